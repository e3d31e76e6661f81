/**
 * Light, dark, or as the system says. The choice is kept in this browser; without one, the page follows the
 * system and changes with it.
 */
const KEY = "pico-theme";
const CHOICES = ["system", "light", "dark"];
const SYMBOLS = { system: "◐", light: "☀", dark: "☾" };

/** Calls `onChange` whenever colours change, whatever changed them. */
export function wireThemeToggle(button, onChange) {
  const show = () => {
    const choice = currentChoice();
    button.textContent = SYMBOLS[choice];
    button.setAttribute("aria-label", `Theme: ${choice}. Change`);
    button.title = `Theme: ${choice}`;
  };
  button.addEventListener("click", () => {
    choose(CHOICES[(CHOICES.indexOf(currentChoice()) + 1) % CHOICES.length]);
    show();
    onChange();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", onChange);
  show();
}

function currentChoice() {
  return document.documentElement.dataset.theme ?? "system";
}

function choose(choice) {
  if (choice === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = choice;
  try {
    if (choice === "system") localStorage.removeItem(KEY);
    else localStorage.setItem(KEY, choice);
  } catch {
    // Storage may be forbidden; the choice then lasts as long as the page.
  }
}
