// Rules of accessibility that a page must keep, after WCAG 2.2 (AA) and what axe-core checks of it. The value is a list
// of what is wrong: empty when all is well.
(() => {
  const wrong = [];
  const say = (rule, element, text) => {
    const name = element ? element.outerHTML.slice(0, 120).replace(/\s+/g, " ") : "";
    wrong.push(rule + ": " + text + " " + name);
  };
  const shown = (e) => {
    if (!e.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true })) return false;
    return !e.closest("[aria-hidden=true]");
  };
  const all = (selector) => [...document.querySelectorAll(selector)];
  const visible = (selector) => all(selector).filter(shown);

  // The document: language, title, landmarks.
  if (!/^[a-z]{2}/.test(document.documentElement.lang)) say("lang", document.documentElement, "the page has no language");
  if (document.title.trim() === "") say("title", null, "the page has no title");
  for (const [selector, name] of [["main", "main"], ["body > header", "banner"], ["body > footer", "contentinfo"], ["nav", "navigation"]]) {
    if (visible(selector).length === 0) say("landmark", null, "there is no " + name);
  }
  if (all("main").length !== 1) say("landmark", null, "there is not one main");
  const skip = document.querySelector("a[href^='#']");
  if (!skip || !document.querySelector(skip.getAttribute("href"))) say("skip", skip, "there is no way past the navigation");
  const navs = visible("nav").map((n) => n.getAttribute("aria-label"));
  if (new Set(navs).size !== navs.length) say("landmark", null, "two navigations have one name: " + navs);

  // Headings come in order.
  const headings = visible("h1, h2, h3, h4, h5, h6");
  if (headings.filter((h) => h.tagName === "H1").length !== 1) say("heading", null, "there is not one h1");
  let level = 0;
  for (const h of headings) {
    const n = Number(h.tagName[1]);
    if (n > level + 1) say("heading", h, "it comes after a heading of level " + level);
    if (h.textContent.trim() === "") say("heading", h, "it is empty");
    level = n;
  }

  // What one can use has a name.
  const nameOf = (e) => {
    const by = e.getAttribute("aria-labelledby");
    if (by) return by.split(/\s+/).map((id) => document.getElementById(id)?.textContent ?? "").join(" ").trim();
    const label = e.getAttribute("aria-label");
    if (label) return label.trim();
    if (e.labels && e.labels.length > 0) return [...e.labels].map((l) => l.textContent).join(" ").trim();
    if (/^(INPUT|SELECT|TEXTAREA)$/.test(e.tagName)) return (e.getAttribute("title") ?? "").trim();
    return (e.textContent.trim() || (e.getAttribute("title") ?? "")).trim();
  };
  for (const e of visible("a[href], button, input:not([type=hidden]), select, textarea, summary, progress, [role=region], [role=img], [role=search]")) {
    if (nameOf(e) === "") say("name", e, "it has no name");
  }
  for (const e of visible("svg")) {
    if (e.getAttribute("role") !== "img") say("image", e, "it is neither hidden nor an image with a name");
  }
  const ids = all("[id]").map((e) => e.id);
  for (const id of new Set(ids)) if (ids.filter((other) => other === id).length > 1) say("id", document.getElementById(id), "its id is there twice");
  for (const e of all("[aria-labelledby], [aria-describedby]")) {
    for (const id of (e.getAttribute("aria-labelledby") ?? e.getAttribute("aria-describedby")).split(/\s+/)) {
      if (shown(e) && !document.getElementById(id)) say("reference", e, "there is no " + id);
    }
  }
  for (const e of all("[tabindex]")) if (Number(e.getAttribute("tabindex")) > 0) say("order", e, "it takes its turn before others");

  // Tables tell which cell belongs to what, also where they are laid out as cards.
  for (const t of visible("table")) {
    if (!t.querySelector("thead th[scope=col]")) say("table", t, "its columns have no heads");
    for (const row of t.querySelectorAll("tbody tr")) {
      if (!row.querySelector("th[scope=row]")) say("table", row, "it has no head");
      if (row.children.length !== t.querySelectorAll("thead th").length) say("table", row, "it has other cells than the head");
    }
    if (t.getAttribute("role") !== "table") say("table", t, "as a card it would be no table any more");
  }

  // Text stands out from its ground.
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const parse = (color) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = color;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = (top, ground) => top.slice(0, 3).map((c, i) => c * top[3] + ground[i] * (1 - top[3])).concat(1);
  const groundOf = (e) => {
    const layers = [];
    for (let at = e; at; at = at.parentElement) {
      const c = parse(getComputedStyle(at).backgroundColor);
      if (c[3] > 0) layers.push(c);
      if (c[3] === 1) break;
    }
    return layers.reverse().reduce((ground, layer) => over(layer, ground), [255, 255, 255, 1]);
  };
  const luminance = ([r, g, b]) => {
    const f = (c) => ((c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * f(r) + 0.7152 * f(g) + 0.0722 * f(b);
  };
  const contrast = (a, b) => {
    const [x, y] = [luminance(a), luminance(b)].sort((m, n) => n - m);
    return (x + 0.05) / (y + 0.05);
  };
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const seen = new Set();
  for (let node = texts.nextNode(); node; node = texts.nextNode()) {
    const e = node.parentElement;
    if (node.data.trim() === "" || seen.has(e) || /^(SCRIPT|STYLE|TITLE|OPTION|PROGRESS)$/i.test(e.tagName) || !shown(e)) continue;
    seen.add(e);
    const style = getComputedStyle(e);
    const ground = groundOf(e);
    const color = over(parse(e instanceof SVGElement ? style.fill : style.color), ground);
    const size = parseFloat(style.fontSize);
    const least = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700) ? 3 : 4.5;
    const found = contrast(color, ground);
    if (found < least) say("contrast", e, found.toFixed(2) + " of " + least);
  }
  // What is drawn and what one can write into stand out, too.
  for (const e of visible("input:not([type=hidden]), select")) {
    const found = contrast(over(parse(getComputedStyle(e).borderTopColor), groundOf(e.parentElement)), groundOf(e.parentElement));
    if (found < 3) say("contrast", e, "its edge has " + found.toFixed(2) + " of 3");
  }
  for (const e of all("svg.strip path, svg.plot rect, svg.plot g path, svg.line rect")) {
    const found = contrast(over(parse(getComputedStyle(e).fill), groundOf(e.closest("svg").parentElement)), groundOf(e.closest("svg").parentElement));
    if (found < 3) say("contrast", e, "it has " + found.toFixed(2) + " of 3");
  }

  // Whoever goes by keyboard sees where he is, and gets at what scrolls.
  const was = document.activeElement;
  for (const e of visible("a[href], button, input:not([type=hidden]), select, summary, [tabindex='0']")) {
    e.focus({ focusVisible: true });
    if (document.activeElement !== e) { say("focus", e, "it does not take it"); continue; }
    const style = getComputedStyle(e);
    if (style.outlineStyle === "none" || parseFloat(style.outlineWidth) < 2) say("focus", e, "one does not see it");
  }
  if (was instanceof HTMLElement) was.focus(); else document.activeElement?.blur();
  document.activeElement?.blur?.();
  for (const e of visible("main *")) {
    const scrolls = /auto|scroll/.test(getComputedStyle(e).overflowX) && e.scrollWidth > e.clientWidth + 1;
    if (scrolls && e.tabIndex < 0 && !e.querySelector("a, button, input")) say("scroll", e, "the keyboard does not get there");
  }

  // Nothing is cut off at the side.
  const root = document.documentElement;
  if (root.scrollWidth > root.clientWidth) {
    const widest = visible("body *").filter((e) => e.getBoundingClientRect().right > root.clientWidth + 1 && !e.closest(".scroll, pre"));
    say("width", widest[0], "the page is " + root.scrollWidth + " wide on a screen of " + root.clientWidth);
  }
  scrollTo(0, 0);
  return wrong;
})();
