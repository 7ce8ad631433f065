package web

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdcron/etcdcron/cronrunner"
)

func TestScheduleWords(t *testing.T) {
	t.Parallel()
	for expr, want := range map[string][2]string{
		"0 9 * * *":         {"At 09:00, Asia/Shanghai", "每天09:00（Asia/Shanghai）"},
		"0 9,18 * * *":      {"At 09:00 and 18:00, Asia/Shanghai", "每天09:00、18:00（Asia/Shanghai）"},
		"*/15 * * * *":      {"Every 15 minutes", "每15分钟"},
		"* * * * *":         {"Every minute", "每分钟"},
		"@every 5m":         {"Every 5 minutes", "每5分钟"},
		"@every 1h":         {"Every hour", "每小时"},
		"0 7 * * MON-FRI":   {"At 07:00, Monday to Friday, Asia/Shanghai", "每周一至五07:00（Asia/Shanghai）"},
		"0 4 * * SUN":       {"At 04:00 on Sunday, Asia/Shanghai", "每周日04:00（Asia/Shanghai）"},
		"0 6 1 * *":         {"At 06:00 on day 1 of the month, Asia/Shanghai", "每月1日06:00（Asia/Shanghai）"},
		"*/10 8-17 * * *":   {"Every 10 minutes from 08:00 to 17:50, Asia/Shanghai", "每10分钟，08:00至17:50（Asia/Shanghai）"},
		"0 6 * JAN-MAR MON": {"At 06:00 on Monday, from January to March, Asia/Shanghai", "At 06:00 on Monday, from January to March, Asia/Shanghai"},
	} {
		s, err := cronrunner.ParseSchedule(expr, "Asia/Shanghai")
		require.NoError(t, err)
		require.Equal(t, want[0], english.scheduleWords(s.Words()), expr)
		require.Equal(t, want[1], chinese.scheduleWords(s.Words()), expr)
	}
}
