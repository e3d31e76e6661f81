/** Puts the theme that the person chose on the page before anything is painted. `theme.js` has the choice itself. */
try {
  const chosen = localStorage.getItem("pico-theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch {
  // Storage may be forbidden; then the system's theme stays.
}
