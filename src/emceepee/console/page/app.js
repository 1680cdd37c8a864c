// Entry point of the page: creates the parts, shows one view at a time, and forwards changes to it.

import { Calls } from "./calls/calls.js";
import { ServerAdmin } from "./calls/server-admin.js";
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
import { OverviewView } from "./views/overview/overview.js";
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
 * The main part of the page. `tick` is called once per second while it is shown.
 * @typedef {object} View
 * @property {Element} element
 * @property {(parameter: string, query: string) => void} show
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
  const views = new Views(store, { calls, catalog: new ToolCatalog(client, calls), admin: new ServerAdmin(client) });
  new Shell(store, views).show();
  calls.resumeAll();
}

/** Each view is created when it is first shown and then kept, so that its input and open parts survive. */
class Views {
  /** @type {Map<ViewName, View>} */
  #made = new Map();
  /** @type {WaterfallView | undefined} */
  #waterfall;

  /**
   * @param {Store} store
   * @param {{ calls: Calls, catalog: ToolCatalog, admin: ServerAdmin }} parts
   */
  constructor(store, parts) {
    this.store = store;
    const showRequests = (/** @type {string} */ session) => {
      this.waterfall.showSession(session);
      location.hash = "#waterfall";
    };
    /** @type {{ [name in ViewName]: () => View }} */
    this.factories = {
      waterfall: () => this.waterfall,
      overview: () => new OverviewView(store),
      questions: () => new QuestionsView(store),
      servers: () => new ServersView(store, parts),
      sessions: () => new SessionsView(store, { showRequests }),
      tasks: () => new TasksView(store),
      timers: () => new TimersView(store),
      events: () => eventsView(store),
      logs: () => logsView(store),
    };
  }

  /** Created on first use, by the keyboard or the mouse. */
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
    const { name, parameter, query } = route(location.hash);
    if (name !== this.#name) {
      if (this.#name) this.views.get(this.#name).hide?.();
      this.#name = name;
      this.main.replaceChildren(this.views.get(name).element);
      this.main.scrollTop = 0;
      this.sidebar.select(name);
    }
    this.views.get(name).show(parameter, query);
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
 * `#view/parameter?query`.
 * @param {string} hash
 * @returns {{ name: ViewName, parameter: string, query: string }}
 */
function route(hash) {
  const [path, ...queries] = hash.replace(/^#/, "").split("?");
  const [name, ...rest] = path.split("/");
  const query = queries.join("?");
  if (!isViewName(name)) return { name: "waterfall", parameter: "", query: "" };
  try {
    return { name, parameter: decodeURIComponent(rest.join("/")), query };
  } catch {
    return { name, parameter: "", query };
  }
}

start();
