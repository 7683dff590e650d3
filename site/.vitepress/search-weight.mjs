/**
 * Ranks guides above the other pages, and the pages that are made from code below all of them: a
 * reader who searches "daily quota" wants the page that explains it. It runs in the browser and
 * therefore uses nothing from outside of it.
 */
export function weightOf(id) {
  if (id.includes("/reference/api/")) return 0.05;
  if (id.includes("/adr/") || id.includes("/contributing/")) return 0.4;
  return id.includes("/guide/") || id.includes("/getting-started/") ? 2 : 1;
}
