/** Light or dark: as the system says, or as the reader chose. */

import { effect, signal } from "@preact/signals";

const KEY = "zae-limiter-theme";
const dark = matchMedia("(prefers-color-scheme: dark)");

function stored(): string | null {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null;
  }
}

export const theme = signal(stored() ?? (dark.matches ? "dark" : "light"));
dark.addEventListener("change", ({ matches }) => {
  if (stored() === null) theme.value = matches ? "dark" : "light";
});
effect(() => {
  document.documentElement.dataset.theme = theme.value;
});

export function toggleTheme(): void {
  theme.value = theme.value === "dark" ? "light" : "dark";
  try {
    localStorage.setItem(KEY, theme.value);
  } catch {
    // A browser that stores nothing forgets the choice with the page.
  }
}
