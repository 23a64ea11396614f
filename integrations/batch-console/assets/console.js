// Refreshes the parts of a page that are marked `data-live`, when the server says that something has changed. Everything works without it.
"use strict";
(() => {
  // In milliseconds: running times and "2 min ago" grow although nothing changes on the server.
  const INTERVAL = 10_000;
  const offline = document.getElementById("offline");
  const silent = offline.textContent;
  let source = null;
  let timer = 0;
  let isRefreshing = false;
  let again = false;

  // Times in the reader's zone, as tooltips.
  const localTimes = (page) => {
    for (const time of page.querySelectorAll("time[datetime]")) {
      const date = new Date(time.dateTime);
      if (!isNaN(date)) time.title = date.toLocaleString();
    }
  };
  localTimes(document);

  const report = (problem) => {
    offline.textContent = problem;
    offline.hidden = false;
  };

  // Finds the link or field again that has the focus, in the new text of its part.
  const twin = (focused, part) => {
    const attribute = focused.hasAttribute("href") ? "href" : "name";
    const value = focused.getAttribute(attribute);
    const all = [...part.querySelectorAll(focused.localName)];
    return value === null ? undefined : all.find((one) => one.getAttribute(attribute) === value);
  };

  const replace = (part, fresh) => {
    const focused = part.contains(document.activeElement) ? document.activeElement : null;
    const scrolled = [...part.querySelectorAll(".scroll")].map((box) => box.scrollLeft);
    part.replaceWith(fresh);
    fresh.querySelectorAll(".scroll").forEach((box, index) => { box.scrollLeft = scrolled[index] ?? 0; });
    if (focused) twin(focused, fresh)?.focus({ preventScroll: true });
  };

  // True while a text of the part is marked, to copy it.
  const isMarked = (part) => {
    const marked = document.getSelection();
    return !marked.isCollapsed && marked.containsNode(part, true);
  };

  const show = (page) => {
    localTimes(page);
    for (const part of document.querySelectorAll("[data-live]")) {
      const fresh = page.getElementById(part.id);
      if (fresh && fresh.innerHTML !== part.innerHTML && !isMarked(part)) replace(part, fresh);
    }
    document.title = page.title;
  };

  const load = async () => {
    const response = await fetch(location.href, { headers: { accept: "text/html" } });
    if (response.redirected && new URL(response.url).pathname.endsWith("/login")) return location.reload();
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    const problem = page.querySelector("#problem h1");
    if (response.status >= 500) return report(problem ? problem.textContent + ". This page refreshes by itself." : silent);
    offline.hidden = true;
    if (response.ok) {
      show(page);
    } else if (problem) {
      // What the page has shown is gone.
      document.querySelector("main").replaceWith(page.querySelector("main"));
    }
    // The page of an execution that has ended does not change any more.
    document.body.dataset.events = page.body.dataset.events ?? "";
    if (!document.body.dataset.events) disconnect();
  };

  const refresh = async () => {
    if (isRefreshing) { again = true; return; }
    isRefreshing = true;
    try {
      await load();
    } catch {
      report(silent);
    } finally {
      isRefreshing = false;
      if (again) { again = false; setTimeout(refresh, 200); }
    }
  };

  const disconnect = () => {
    source?.close();
    source = null;
    clearInterval(timer);
  };

  const connect = () => {
    disconnect();
    if (!document.body.dataset.events || document.hidden) return;
    source = new EventSource(document.body.dataset.events);
    source.addEventListener("open", refresh);
    source.addEventListener("change", refresh);
    source.addEventListener("error", (event) => {
      refresh();
      // The browser does not connect again by itself after a response that is no stream, such as that of a proxy.
      if (event.target.readyState === EventSource.CLOSED) setTimeout(connect, INTERVAL);
    });
    timer = setInterval(refresh, INTERVAL);
  };

  // A browser has six connections to a server: hidden tabs must not hold them.
  document.addEventListener("visibilitychange", connect);
  connect();
})();
