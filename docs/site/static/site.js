// A page opened as a file may fetch no other: the search then lists titles, without an excerpt of each page.
if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;

// A formula that is wider than its place scrolls: the keyboard reaches it, too.
addEventListener("load", async () => {
  await window.MathJax?.startup?.promise;
  for (const formula of document.querySelectorAll("mjx-container[display=true]"))
    if (formula.scrollWidth > formula.clientWidth) formula.tabIndex = 0;
});
