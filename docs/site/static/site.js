// A page opened as a file may fetch no other: the search then lists titles, without an excerpt of each page.
if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;

// What is wider than its place scrolls there: the keyboard reaches it, too, once it is seen.
const places = ".bd-article :is(table, pre, dt.sig, .cell_output, mjx-container[display=true], span.math[data-width=wide])";
const reach = () => {
  for (const formula of document.querySelectorAll(".bd-article span.math:has(mjx-container)"))
    formula.dataset.width = formula.firstElementChild.getBoundingClientRect().width > formula.clientWidth + 1 ? "wide" : "fits";
  for (const place of document.querySelectorAll(places)) if (place.scrollWidth > place.clientWidth) place.tabIndex = 0;
};
addEventListener("load", async () => {
  await window.MathJax?.startup?.promise;
  reach();
});
addEventListener("toggle", reach, true);
addEventListener("resize", reach);

// The page's own place in the contents is in sight.
addEventListener("load", () => {
  const bar = document.querySelector(".bd-sidebar-primary"), here = bar?.querySelector("a.current")?.getBoundingClientRect();
  if (here && (here.top < 0 || here.bottom > innerHeight)) bar.scrollTop += here.top - innerHeight / 2;
});

// The explorable on the first page is as light or dark as the page.
addEventListener("load", () => {
  const frame = document.querySelector("iframe.explorable"), page = document.documentElement;
  if (!frame) return;
  const tell = () => frame.contentWindow.postMessage({theme: page.dataset.theme}, "*");
  frame.addEventListener("load", tell);
  new MutationObserver(tell).observe(page, {attributeFilter: ["data-theme"]});
  tell();
});
