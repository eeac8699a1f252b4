// A page opened as a file may fetch no other: the search then lists titles, without an excerpt of each page.
if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;

// What is wider than its place scrolls there: the keyboard reaches it, too, once it is seen.
const places = ".bd-article :is(table, pre, dt.sig, .cell_output, mjx-container[display=true])";
const reach = () => {
  for (const place of document.querySelectorAll(places)) if (place.scrollWidth > place.clientWidth) place.tabIndex = 0;
};
addEventListener("load", async () => {
  await window.MathJax?.startup?.promise;
  reach();
});
addEventListener("toggle", reach, true);
addEventListener("resize", reach);

// The explorable on the first page is as light or dark as the page.
addEventListener("load", () => {
  const frame = document.querySelector("iframe.explorable"), page = document.documentElement;
  if (!frame) return;
  const tell = () => frame.contentWindow.postMessage({theme: page.dataset.theme}, "*");
  frame.addEventListener("load", tell);
  new MutationObserver(tell).observe(page, {attributeFilter: ["data-theme"]});
  tell();
});
