// Keeps the page current without reloading it, and asks for confirmation in a dialog. Everything works without it too.
(() => {
  "use strict";
  const EVERY = 2000;
  const SLOWEST = 30000;
  const $ = (id) => document.getElementById(id);
  let delay = EVERY;
  let seen = new Date();

  // Make `old` look like `fresh` and keep what a person has done to it: focus, ticks, scroll, text selections.
  function sync(old, fresh) {
    if (old.isEqualNode(fresh)) return;
    for (const { name } of [...old.attributes]) if (!fresh.hasAttribute(name)) old.removeAttribute(name);
    for (const { name, value } of fresh.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
    const keyed = new Map();
    for (const child of old.children) if (child.dataset?.key !== undefined) keyed.set(child.dataset.key, child);
    let next = old.firstChild;
    for (const child of [...fresh.childNodes]) {
      const key = child.dataset?.key;
      let match = key === undefined ? next : keyed.get(key);
      if (match && (match.nodeName !== child.nodeName || (key === undefined && match.dataset?.key !== undefined))) match = null;
      if (!match) {
        old.insertBefore(child, next);
        continue;
      }
      if (match !== next) old.insertBefore(match, next);
      else next = next.nextSibling;
      if (match.nodeType === Node.ELEMENT_NODE) sync(match, child);
      else if (match.nodeValue !== child.nodeValue) match.nodeValue = child.nodeValue;
    }
    while (next) {
      const gone = next;
      next = next.nextSibling;
      gone.remove();
    }
  }

  const parse = (text) => new DOMParser().parseFromString(text, "text/html");

  async function refresh() {
    const response = await fetch(location.href, { credentials: "same-origin", signal: AbortSignal.timeout(10000) });
    if (response.redirected) return location.reload(); // the session is over
    if (!response.ok) throw new Error(response.status);
    const fresh = parse(await response.text());
    for (const part of document.querySelectorAll("[data-live]")) {
      const other = fresh.getElementById(part.id);
      if (other) sync(part, other);
    }
    // what was not there before, such as the first error, comes with its section
    const missing = [...fresh.querySelectorAll("[data-live]")].some((part) => !$(part.id));
    if (missing && !document.querySelector("input:checked")) sync($("main"), fresh.getElementById("main"));
  }

  async function turn() {
    if (!document.hidden && !$("dialog").open) {
      try {
        await refresh();
        seen = new Date();
        delay = EVERY;
        $("stale").hidden = true;
        $("pulse").hidden = false;
      } catch {
        delay = Math.min(delay * 2, SLOWEST);
        $("stale-since").textContent = seen.toLocaleTimeString();
        $("stale").hidden = false;
        $("pulse").hidden = true;
      }
    }
    setTimeout(turn, delay);
  }

  async function confirmIn(url) {
    const response = await fetch(url, { credentials: "same-origin" });
    const part = parse(await response.text()).getElementById("confirm");
    if (response.redirected || !part) return location.assign(url);
    const dialog = $("dialog");
    dialog.replaceChildren(part);
    const next = dialog.querySelector("input[name=next]");
    if (next) next.value = location.pathname + location.search;
    dialog.showModal();
  }

  document.addEventListener("click", (event) => {
    const close = event.target.closest("#dialog [data-close]");
    const link = event.target.closest("a[data-confirm]");
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    if (close) {
      event.preventDefault();
      $("dialog").close();
    } else if (link) {
      event.preventDefault();
      confirmIn(link.href);
    }
  });

  document.addEventListener("submit", (event) => {
    if (!event.target.matches("form[data-confirm]")) return;
    event.preventDefault();
    confirmIn(event.target.action + "?" + new URLSearchParams(new FormData(event.target, event.submitter)));
  });

  document.addEventListener("change", (event) => {
    if (!event.target.matches("[data-all]")) return;
    for (const box of event.target.closest("form").querySelectorAll("input[name=key]")) box.checked = event.target.checked;
  });

  if (document.querySelector("[data-live]")) {
    $("pulse").hidden = false;
    setTimeout(turn, EVERY);
  }
})();
