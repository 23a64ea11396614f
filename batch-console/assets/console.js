// Refreshes the parts of a page that are marked `data-live`, when the server says that something has changed. Everything works without it.
"use strict";
(() => {
  const offline = document.getElementById("offline");

  // Times in the reader's zone, as tooltips.
  const localTimes = () => {
    for (const time of document.querySelectorAll("time[datetime]")) {
      const date = new Date(time.dateTime);
      if (!isNaN(date)) time.title = date.toLocaleString();
    }
  };
  localTimes();

  const events = document.body.dataset.events;
  if (!events || !window.EventSource) return;

  let running = false;
  let again = false;
  const refresh = async () => {
    if (running) { again = true; return; }
    running = true;
    try {
      const response = await fetch(location.href, { headers: { accept: "text/html" } });
      if (response.redirected && new URL(response.url).pathname.endsWith("/login")) { location.reload(); return; }
      const page = new DOMParser().parseFromString(await response.text(), "text/html");
      if (!response.ok) { offline.hidden = false; return; }
      offline.hidden = true;
      for (const part of document.querySelectorAll("[data-live]")) {
        const fresh = page.getElementById(part.id);
        if (fresh && fresh.innerHTML !== part.innerHTML && !part.contains(document.activeElement)) part.replaceWith(fresh);
      }
      localTimes();
    } catch {
      offline.hidden = false;
    } finally {
      running = false;
      if (again) { again = false; setTimeout(refresh, 200); }
    }
  };

  const source = new EventSource(events);
  source.addEventListener("change", refresh);
  // The browser connects again by itself; what was missed is read then.
  source.addEventListener("error", () => { offline.hidden = false; });
  source.addEventListener("open", refresh);
})();
