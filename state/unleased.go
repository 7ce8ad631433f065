package state

import "context"

// Unleased are the keys under prefix that no lease ends. Of keys that stand for a living process (candidates, locks,
// instances) there ought to be none: they were restored from a backup, or put there by a tool, and stay for ever.
func (s *Store) Unleased(ctx context.Context, prefix string) ([]string, error) {
	kvs, _, err := s.list(ctx, prefix) // with its values: of keys alone etcd does not tell the lease
	if err != nil {
		return nil, err
	}
	var keys []string
	for _, kv := range kvs {
		if kv.Lease == 0 {
			keys = append(keys, string(kv.Key))
		}
	}
	return keys, nil
}
