// Light or dark: what the system prefers, unless ?theme=dark or ?theme=light, the reader's button, or the page around says otherwise.

function turn(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
  story.recolour();
}
turn(new URLSearchParams(location.search).get("theme"));
if (window.top !== window) document.documentElement.classList.add("framed");
document.getElementById("theme").addEventListener("click", () => turn(isDark() ? "light" : "dark"));
addEventListener("message", ({data}) => { if (["light", "dark"].includes(data?.theme)) turn(data.theme); });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => story.recolour());
