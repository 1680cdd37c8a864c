// Where the page begins: makes the parts, shows one view at a time, and hands on what changed.

import { Calls } from "./calls/calls.js";
import { ToolCatalog } from "./calls/tool-catalog.js";
import { Feed } from "./net/feed.js";
import { McpClient } from "./net/mcp-client.js";
import { claimTabNonce } from "./net/tab-claim.js";
import { enableShortcuts, showShortcuts } from "./shell/keyboard.js";
import { QuestionAlerts } from "./shell/question-alerts.js";
import { Sidebar, VIEWS } from "./shell/sidebar.js";
import { everySecond } from "./state/server-clock.js";
import { setOwnNonce } from "./state/session-names.js";
import { Store } from "./state/store.js";
import { byId } from "./ui/dom.js";
import { showToast } from "./ui/toast.js";
import { eventsView } from "./views/events.js";
import { logsView } from "./views/logs.js";
import { QuestionsView } from "./views/questions/questions.js";
import { ServersView } from "./views/servers/servers.js";
import { SessionsView } from "./views/sessions.js";
import { TasksView } from "./views/tasks.js";
import { TimersView } from "./views/timers.js";
import { WaterfallView } from "./views/waterfall/waterfall.js";

/**
 * @import { Topics } from "./state/store.js"
 * @import { ViewName } from "./shell/sidebar.js"
 */
/**
 * What fills the main part of the page. `tick` is called once a second while it is shown.
 * @typedef {object} View
 * @property {Element} element
 * @property {(parameter: string) => void} show
 * @property {(topics: Topics) => void} update
 * @property {() => void} [hide]
 * @property {() => void} [tick]
 */

/** @type {Map<string, string>} */
const TITLES = new Map(VIEWS);
const SESSION_ENDED = "The session of this page had ended, so a new one was started. Calls that were running are lost.";

async function start() {
  const store = new Store();
  new Feed(store).run();
  const nonce = await claimTabNonce();
  setOwnNonce(nonce);
  const client = new McpClient({
    nonce,
    onState: (state) => {
      document.body.dataset.mcp = state;
    },
    onSessionGone: (refusedId) => {
      calls.sessionGone(refusedId);
      showToast(SESSION_ENDED, { kind: "error", sticky: true });
    },
  });
  const calls = new Calls(client, store);
  new Shell(store, new Views(store, calls, new ToolCatalog(client, calls))).show();
  calls.resumeAll();
}

/** Each view is made when it is first shown, and kept: what was typed or opened in it is still there later. */
class Views {
  /** @type {Map<ViewName, View>} */
  #made = new Map();
  /** @type {WaterfallView | undefined} */
  #waterfall;

  /**
   * @param {Store} store
   * @param {Calls} calls
   * @param {ToolCatalog} catalog
   */
  constructor(store, calls, catalog) {
    this.store = store;
    const showRequests = (/** @type {string} */ session) => {
      this.waterfall.showSession(session);
      location.hash = "#waterfall";
    };
    /** @type {{ [name in ViewName]: () => View }} */
    this.factories = {
      waterfall: () => this.waterfall,
      questions: () => new QuestionsView(store),
      servers: () => new ServersView(store, { calls, catalog }),
      sessions: () => new SessionsView(store, { showRequests }),
      tasks: () => new TasksView(store),
      timers: () => new TimersView(store),
      events: () => eventsView(store),
      logs: () => logsView(store),
    };
  }

  /** The keyboard moves it, too. */
  get waterfall() {
    return (this.#waterfall ??= new WaterfallView(this.store));
  }

  /** @param {ViewName} name */
  get(name) {
    const view = this.#made.get(name) ?? this.factories[name]();
    this.#made.set(name, view);
    return view;
  }
}

class Shell {
  /** @type {ViewName | null} */
  #name = null;

  /**
   * @param {Store} store
   * @param {Views} views
   */
  constructor(store, views) {
    this.store = store;
    this.views = views;
    this.main = byId("main");
    this.sidebar = new Sidebar(store, { onHelp: showShortcuts });
    this.alerts = new QuestionAlerts(store);
    store.subscribe((topics) => this.#update(topics));
    everySecond(() => this.#tick());
    addEventListener("hashchange", () => this.show());
    enableShortcuts({ current: () => this.#name ?? "", waterfall: () => views.waterfall });
    byId("skip").addEventListener("click", (event) => {
      event.preventDefault();
      this.main.focus();
    });
  }

  show() {
    const [name, parameter] = route(location.hash);
    if (name !== this.#name) {
      if (this.#name) this.views.get(this.#name).hide?.();
      this.#name = name;
      this.main.replaceChildren(this.views.get(name).element);
      this.main.scrollTop = 0;
      this.sidebar.select(name);
    }
    this.views.get(name).show(parameter);
    this.#update(new Set());
  }

  /** @param {Topics} topics */
  #update(topics) {
    this.sidebar.update();
    if (this.#name === null) return;
    this.alerts.update(TITLES.get(this.#name) ?? "");
    this.views.get(this.#name).update(topics);
    if (this.#name !== "questions" && topics.has("sessions")) this.views.get("questions").update(topics);
  }

  #tick() {
    this.sidebar.update();
    if (this.#name !== null) this.views.get(this.#name).tick?.();
  }
}

/**
 * @param {string} name
 * @returns {name is ViewName}
 */
const isViewName = (name) => TITLES.has(name);

/**
 * @param {string} hash
 * @returns {[name: ViewName, parameter: string]}
 */
function route(hash) {
  const [name, ...rest] = hash.replace(/^#/, "").split("/");
  if (!isViewName(name)) return ["waterfall", ""];
  try {
    return [name, decodeURIComponent(rest.join("/"))];
  } catch {
    return [name, ""];
  }
}

start();
