// Light, dark, or as the system has it.

import { h } from "../ui/dom.js";
import { icon } from "../ui/icons.js";

const KEY = "emceepee.theme";
const NEXT = { system: "light", light: "dark", dark: "system" };
const ICONS = { system: "system", light: "sun", dark: "moon" };

export function themeButton() {
  const button = h("button", { type: "button", class: "button quiet square", onclick: () => choose(NEXT[chosen()]) });
  const show = () => {
    const label = `Theme: ${chosen()}`;
    button.replaceChildren(icon(ICONS[chosen()]));
    button.setAttribute("aria-label", label);
    button.title = label;
  };
  const choose = (theme) => {
    if (theme === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    try {
      localStorage.setItem(KEY, theme);
    } catch {
      // It holds until the page is left.
    }
    show();
  };
  show();
  return button;
}

const chosen = () => document.documentElement.dataset.theme ?? "system";
