// A classic script in the head: it sets the chosen theme before the first paint, because a later change would flash.
(() => {
  try {
    const theme = localStorage.getItem("emceepee.theme");
    if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
  } catch {
    // Storage is unavailable: the system's theme applies.
  }
})();
