// Returns what is wrong with the accessibility of the page.
const problems = [];
const say = (text, element) => problems.push(text + ": " + (element ? element.outerHTML.slice(0, 120) : ""));
if (!document.documentElement.lang) say("no language");
if (!document.title) say("no title");
for (const landmark of ["header", "main", "footer"]) {
  if (document.querySelectorAll(landmark).length !== 1) say("not one " + landmark);
}
if (document.querySelectorAll("h1").length !== 1) say("not one h1");
let level = 1;
for (const heading of document.querySelectorAll("h1, h2, h3")) {
  const next = Number(heading.tagName[1]);
  if (next > level + 1) say("a level of headings is left out", heading);
  level = next;
}
const ids = new Set();
for (const element of document.querySelectorAll("[id]")) {
  if (ids.has(element.id)) say("the same id twice", element);
  ids.add(element.id);
}
for (const field of document.querySelectorAll("input:not([type=hidden]), select, textarea")) {
  if (!field.labels.length && !field.ariaLabel) say("no label", field);
}
for (const element of document.querySelectorAll("a, button")) {
  if (!element.textContent.trim() && !element.ariaLabel) say("no text", element);
}
for (const picture of document.querySelectorAll("svg")) {
  if (!picture.getAttribute("aria-hidden") && picture.getAttribute("role") !== "group") say("a picture whose links are hidden", picture);
  if (picture.getAttribute("role") === "group" && !picture.ariaLabel && !picture.querySelector("title")) say("a picture without a name", picture);
}
for (const bar of document.querySelectorAll("progress")) {
  if (!bar.ariaLabel) say("no label", bar);
}
for (const notes of document.querySelectorAll("td.notes")) {
  const area = notes.getBoundingClientRect();
  if (notes.textContent.trim() && area.right > window.innerWidth) say("notes that are cut off", notes);
}
for (const cell of document.querySelectorAll("table")) {
  if (!cell.querySelector("th") && !cell.classList.contains("log")) say("a table without headings", cell);
}
if (document.scrollingElement.scrollWidth > window.innerWidth + 1) say("wider than the window");

// The contrast of texts, as WCAG 2 defines it.
const parse = (color) => {
  const numbers = color.match(/[\d.]+/g).map(Number);
  const scale = color.startsWith("color(") ? 255 : 1;
  return { rgb: numbers.slice(0, 3).map((number) => number * scale), alpha: numbers.length > 3 ? numbers[3] : 1 };
};
const luminance = (rgb) => {
  const [r, g, b] = rgb.map((value) => {
    const part = value / 255;
    return part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const background = (element) => {
  for (let at = element; at; at = at.parentElement) {
    const color = parse(getComputedStyle(at).backgroundColor);
    if (color.alpha === 1) return color.rgb;
  }
  return [255, 255, 255];
};
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
const seen = new Set();
while (walker.nextNode()) {
  const element = walker.currentNode.parentElement;
  if (!walker.currentNode.textContent.trim() || seen.has(element) || element.closest("svg, noscript, script, .skip, [hidden]")) continue;
  seen.add(element);
  const style = getComputedStyle(element);
  if (style.visibility === "hidden" || !element.getClientRects().length) continue;
  const [light, dark] = [luminance(parse(style.color).rgb), luminance(background(element))].sort((a, b) => b - a);
  const ratio = (light + 0.05) / (dark + 0.05);
  const isLarge = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.66 && Number(style.fontWeight) >= 700);
  if (ratio < (isLarge ? 3 : 4.5)) say("contrast " + ratio.toFixed(2), element);
}
return problems;
