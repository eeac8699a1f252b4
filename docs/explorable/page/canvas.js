// What all pictures share: colours that follow the page's theme, sharp canvases, words, scales.

const tone = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
const isDark = () => tone("dark") === "1";
const percent = (value) => `${(100 * value).toFixed(0)}%`;
const many = (count, one, more = `${one}s`) => `${count} ${count === 1 ? one : more}`;

// A colour that stands out on the page's ground: on a dark one, mixed with white.
function onGround(hex, much = 0.35) {
  if (!isDark()) return hex;
  const parts = [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
  return `rgb(${parts.map((value) => Math.round(value + (255 - value) * much)).join(", ")})`;
}

function canvasOf(element, describe) {
  const {width, height} = element.getBoundingClientRect(), scale = window.devicePixelRatio || 1;
  if (element.width !== Math.round(width * scale)) element.width = Math.round(width * scale);
  if (element.height !== Math.round(height * scale)) element.height = Math.round(height * scale);
  const g = element.getContext("2d");
  g.setTransform(scale, 0, 0, scale, 0, 0);
  g.clearRect(0, 0, width, height);
  g.font = "12px system-ui, sans-serif";
  g.textBaseline = "middle";
  element.setAttribute("aria-label", describe);
  return {g, width, height};
}

function write(g, words, x, y, {colour = tone("soft"), align = "left"} = {}) {
  g.fillStyle = colour;
  g.textAlign = align;
  g.fillText(words, x, y);
}

const STALEST = 60;
function shade(staleness) {  // yellow is fresh, the darker the staler, as in the library's timelines
  const scale = DATA.staleness, index = Math.min(1, Math.log1p(staleness) / Math.log1p(STALEST)) * (scale.length - 1);
  return onGround(scale[Math.round(index)], 0.4);
}
