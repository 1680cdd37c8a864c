// Line icons, drawn as paths in a 24 by 24 box.

import { svg } from "./dom.js";

/** @typedef {keyof typeof PATHS} IconName */

const PATHS = {
  waterfall: ["M4 6h8", "M8 12h9", "M13 18h7"],
  overview: ["M4 4v16h16", "M8 15l4-5 3 3 5-7"],
  questions: ["M4 5h16v11H9l-5 4z", "M9.5 9.2a2.5 2.5 0 1 1 3.4 2.3c-.6.3-.9.6-.9 1.2", "M12 14.2v.1"],
  servers: ["M4 5h16v6H4z", "M4 13h16v6H4z", "M7.5 8h.01", "M7.5 16h.01"],
  sessions: [
    "M9 11a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7z",
    "M2.5 20a6.5 6.5 0 0 1 13 0",
    "M16 4.5a3.5 3.5 0 0 1 0 6.5",
    "M18 14.5a6 6 0 0 1 3.5 5.5",
  ],
  tasks: ["M4 6.5l1.5 1.5L8.5 5", "M12 6.5h8", "M4 16.5l1.5 1.5 3-3", "M12 16.5h8"],
  timers: ["M12 21a8 8 0 1 0 0-16 8 8 0 0 0 0 16z", "M12 9v4l2.5 2", "M9.5 2h5"],
  events: ["M13 3L5 14h6l-1 7 8-11h-6z"],
  logs: ["M5 4h14v16H5z", "M8.5 8.5h7", "M8.5 12h7", "M8.5 15.5h4"],
  search: ["M10.5 17a6.5 6.5 0 1 0 0-13 6.5 6.5 0 0 0 0 13z", "M15.5 15.5L20 20"],
  pause: ["M9 6v12", "M15 6v12"],
  play: ["M8 5.5v13l10.5-6.5z"],
  live: ["M12 14a2 2 0 1 0 0-4 2 2 0 0 0 0 4z", "M7.5 7.5a6.4 6.4 0 0 0 0 9", "M16.5 7.5a6.4 6.4 0 0 1 0 9"],
  plus: ["M12 6v12", "M6 12h12"],
  minus: ["M6 12h12"],
  fit: ["M4 6v12", "M20 6v12", "M8 12h8", "M10 9.5L7.5 12l2.5 2.5", "M14 9.5l2.5 2.5-2.5 2.5"],
  close: ["M6 6l12 12", "M18 6L6 18"],
  copy: ["M9 9h11v11H9z", "M5 15H4V4h11v1"],
  back: ["M15 6l-6 6 6 6"],
  sun: [
    "M12 16a4 4 0 1 0 0-8 4 4 0 0 0 0 8z",
    "M12 3v1.5",
    "M12 19.5V21",
    "M3 12h1.5",
    "M19.5 12H21",
    "M5.6 5.6l1 1",
    "M17.4 17.4l1 1",
    "M5.6 18.4l1-1",
    "M17.4 6.6l1-1",
  ],
  moon: ["M20 14.5A8.5 8.5 0 0 1 9.5 4a8.5 8.5 0 1 0 10.5 10.5z"],
  system: ["M4 5h16v11H4z", "M9 20h6", "M12 16v4"],
  help: ["M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18z", "M9.5 9.5a2.5 2.5 0 1 1 3.6 2.2c-.7.4-1.1.8-1.1 1.6", "M12 16.5v.1"],
  logout: ["M10 4H5v16h5", "M15 8l4 4-4 4", "M19 12H9"],
  success: ["M5 12.5l4.5 4.5L19 7.5"],
  error: ["M12 6.5v7", "M12 17.3v.1"],
  cancelled: ["M6.5 17.5l11-11"],
  pending: ["M12 6.5v6l3.5 2"],
  task: ["M5 7h14", "M5 12h9", "M5 17h6", "M16 14l3 3-3 3"],
  bell: ["M6 16V11a6 6 0 0 1 12 0v5l1.5 2h-15z", "M10 21h4"],
  external: ["M13 5h6v6", "M19 5l-8.5 8.5", "M17 14v5H5V7h5"],
  warning: ["M12 4l9 16H3z", "M12 10v4.5", "M12 17.2v.1"],
};

/**
 * @param {IconName} name
 * @param {number} [size]
 */
export const icon = (name, size = 18) => svg(size, ...PATHS[name]);
