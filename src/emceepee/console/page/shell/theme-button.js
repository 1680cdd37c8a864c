// Light, dark, or the system's theme.

import { h } from "../ui/dom.js";
import { icon } from "../ui/icons.js";

const KEY = "emceepee.theme";
/** @typedef {"system" | "light" | "dark"} Theme */

/** @type {{ [theme in Theme]: Theme }} */
const NEXT = { system: "light", light: "dark", dark: "system" };
/** @type {{ [theme in Theme]: import("../ui/icons.js").IconName }} */
const ICONS = { system: "system", light: "sun", dark: "moon" };

export function themeButton() {
  const button = h("button", {
    type: "button",
    class: "button quiet icon-only",
    onclick: () => setTheme(NEXT[currentTheme()]),
  });
  const show = () => {
    const label = `Theme: ${currentTheme()}`;
    button.replaceChildren(icon(ICONS[currentTheme()]));
    button.setAttribute("aria-label", label);
    button.title = label;
  };
  const setTheme = (/** @type {Theme} */ theme) => {
    if (theme === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    try {
      localStorage.setItem(KEY, theme);
    } catch {
      // It applies until the page is closed.
    }
    show();
  };
  show();
  return button;
}

/** @returns {Theme} */
const currentTheme = () => {
  const theme = document.documentElement.dataset.theme;
  return theme === "light" || theme === "dark" ? theme : "system";
};
