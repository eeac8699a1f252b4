// Light or dark: what the system prefers, unless ?theme=dark or ?theme=light says otherwise or the reader presses the button.

const theme = new URLSearchParams(location.search).get("theme");
if (theme) document.documentElement.dataset.theme = theme;
if (window.top !== window) document.documentElement.classList.add("framed");
document.getElementById("theme").addEventListener("click", () => {
  document.documentElement.dataset.theme = isDark() ? "light" : "dark";
  story.draw();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => story.draw());
