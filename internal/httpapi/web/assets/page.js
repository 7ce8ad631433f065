// Keeps an open page up to date: relative times tick, and when something has changed the page's main part is fetched
// anew and the regions that differ are swapped. Without it the page says the same, as of when it was loaded.
"use strict";

(() => {
  const root = document.documentElement;
  const main = document.getElementById("main");
  const units = root.dataset.units.split(",");
  const sizes = [1, 60, 3600, 86400, 31536000];

  // span says whole seconds as the server does: in the largest unit, and the next one too while the number is small.
  function span(seconds) {
    let i = 0;
    while (i + 1 < sizes.length && seconds >= sizes[i + 1]) i++;
    const n = Math.floor(seconds / sizes[i]);
    const rest = i > 0 && n < 10 ? Math.floor((seconds % sizes[i]) / sizes[i - 1]) : 0;
    return n + units[i] + (rest > 0 ? rest + units[i - 1] : "");
  }

  function tick(page = document) {
    for (const t of page.querySelectorAll("time[datetime]")) {
      const d = Math.round((Date.parse(t.dateTime) - Date.now() + ahead) / 1000);
      const text = d === 0 ? root.dataset.now : (d > 0 ? root.dataset.in : root.dataset.ago).replace("#", span(Math.abs(d)));
      if (t.textContent !== text) t.textContent = text;
    }
  }

  // ahead is by how much this clock is behind the server's, so that times count from the same now.
  let ahead = 0;
  function compareClocks(response, sent) {
    const date = Date.parse(response.headers.get("Date"));
    const difference = date + 500 - (sent + Date.now()) / 2;
    ahead = Number.isFinite(difference) && Math.abs(difference) > 2000 ? -difference : 0;
  }

  // busy says whether somebody is about to use a region: then it is not swapped under his hands.
  function busy(region) {
    if (region.contains(document.activeElement)) return true;
    const selected = document.getSelection();
    if (selected && !selected.isCollapsed && selected.containsNode(region, true)) return true;
    if (region.querySelector("details[open]")) return true;
    if ([...region.querySelectorAll("input")].some((input) => input.value !== input.defaultValue)) return true;
    return region.matches(":hover") && region.querySelector("a, button, input, select, summary") !== null;
  }

  // swap replaces a region by its new self, row by row where both have the same rows, so that only what has changed moves.
  function swap(old, fresh) {
    if (old.isEqualNode(fresh)) return true;
    const rows = old.querySelectorAll("[data-row]");
    const others = fresh.querySelectorAll("[data-row]");
    const same = rows.length > 0 && rows.length === others.length &&
      [...rows].every((row, i) => row.dataset.row === others[i].dataset.row);
    if (same) {
      rows.forEach((row, i) => {
        if (!row.isEqualNode(others[i]) && !busy(row)) row.replaceWith(document.importNode(others[i], true));
      });
      if (old.isEqualNode(fresh)) return true;
    }
    if (busy(old)) return false;
    old.replaceWith(document.importNode(fresh, true));
    return true;
  }

  function take(text) {
    const fresh = new DOMParser().parseFromString("<main>" + text + "</main>", "text/html");
    tick(fresh); // so that what says the same is the same
    const regions = [...main.querySelectorAll("[data-live]")];
    const others = [...fresh.querySelectorAll("[data-live]")];
    const ids = (list) => list.map((e) => e.id).join(" ");
    let all = true;
    if (ids(regions) === ids(others)) {
      for (const region of regions) all = swap(region, fresh.getElementById(region.id)) && all;
    } else if (busy(main)) { // another kind of page, as when a request has become a run
      all = false;
    } else {
      main.replaceChildren(...document.importNode(fresh.querySelector("main"), true).childNodes);
    }
    tick();
    return all;
  }

  // Changes come in bursts. One fetch answers for all that came while the last one was on its way, and between two there
  // is a second at least, and more when the server takes long.
  const rest = 1000, restsPerAnswer = 5;
  let paused = false, wanted = false, fetching = false, again = 0;

  async function refresh() {
    if (paused || document.hidden) { wanted = true; return; }
    if (fetching) { wanted = true; return; }
    fetching = true;
    wanted = false;
    const sent = Date.now();
    try {
      const address = new URL(location.href);
      address.searchParams.delete("said");
      const response = await fetch(address, { headers: { "X-Fragment": "main" }, redirect: "error", signal: AbortSignal.timeout(15000) });
      compareClocks(response, sent);
      if (response.status === 401) location.reload(); // the session is over: this leads to where one signs in
      const text = response.ok ? await response.text() : "";
      if (paused || text && !take(text)) wanted = true; // it may have been paused while the answer was on its way
      if (main.querySelector("[data-unread]")) wanted = true;
    } catch {
      wanted = true; // the server has gone for a moment
    }
    clearTimeout(again);
    again = setTimeout(() => { fetching = false; if (wanted) refresh(); }, Math.max(rest, restsPerAnswer * (Date.now() - sent)));
  }

  const button = document.getElementById("live");
  let events = null;
  let polling = 0;

  function show(word) {
    if (!button) return;
    button.dataset.is = word;
    button.setAttribute("aria-pressed", String(!paused));
    const text = button.dataset[{ on: "liveOn", paused: "livePaused", lost: "liveLost" }[word]];
    button.setAttribute("aria-label", button.dataset.label + ": " + text);
    const what = button.querySelector(".what");
    if (what.textContent !== text) what.textContent = text;
  }

  function listen() {
    if (events || paused || document.hidden) return;
    events = new EventSource(document.body.dataset.events);
    events.onopen = () => { show("on"); refresh(); };
    events.onerror = () => {
      show("lost");
      if (events && events.readyState === EventSource.CLOSED) { // refused: as many listen as may
        silence();
        clearTimeout(polling);
        polling = setTimeout(() => { refresh(); listen(); }, 10000);
      }
    };
    for (const kind of ["reset", "leader", "instance", "spec", "status", "run", "progress", "control", "request"]) {
      events.addEventListener(kind, refresh);
    }
  }

  function silence() {
    if (events) events.close();
    events = null;
  }

  if (document.body.dataset.events && button) {
    button.hidden = false;
    button.addEventListener("click", () => {
      paused = !paused;
      if (paused) { silence(); show("paused"); } else { listen(); refresh(); }
    });
    document.addEventListener("visibilitychange", () => {
      if (document.hidden) silence();
      else { listen(); if (wanted) refresh(); }
    });
    addEventListener("pagehide", silence);
    addEventListener("pageshow", (e) => { if (e.persisted) { listen(); refresh(); } });
    listen();
  }
  tick();
  setInterval(() => tick(), 1000);
})();
