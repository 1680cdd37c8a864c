// Where the page begins: makes the parts, shows one view at a time, and hands on what changed.

import { Calls } from "./calls/calls.js";
import { everySecond } from "./state/server-clock.js";
import { eventsView } from "./views/events.js";
import { Feed } from "./net/feed.js";
import { listenToKeys, showHelp } from "./shell/keyboard.js";
import { logsView } from "./views/logs.js";
import { McpClient } from "./net/mcp-client.js";
import { setOwnNonce } from "./state/session-names.js";
import { notice } from "./ui/toast.js";
import { Attention } from "./shell/question-alerts.js";
import { Questions } from "./views/questions/questions.js";
import { Servers } from "./views/servers/servers.js";
import { Sessions } from "./views/sessions.js";
import { Sidebar, VIEWS } from "./shell/sidebar.js";
import { Store } from "./state/store.js";
import { claimTab } from "./net/tab-claim.js";
import { Tasks } from "./views/tasks.js";
import { Timers } from "./views/timers.js";
import { Toolbox } from "./calls/tool-catalog.js";
import { Waterfall } from "./views/waterfall/waterfall.js";

const TITLES = new Map(VIEWS);
const ENDED = "The session of this page had ended, so a new one was started. Calls that were running are lost.";

async function start() {
  const store = new Store();
  new Feed(store).run();
  const nonce = await claimTab();
  setOwnNonce(nonce);
  const client = new McpClient({
    nonce,
    onState: (state) => {
      document.body.dataset.mcp = state;
    },
    onSessionGone: (refusedId) => {
      calls.sessionGone(refusedId);
      notice(ENDED, { kind: "error", lasting: true });
    },
  });
  const calls = new Calls(client, store);
  new Shell(store, new Views(store, calls, new Toolbox(client, calls))).show();
  calls.resumeAll();
}

/** Each view is made when it is first shown, and kept: what was typed or opened in it is still there later. */
class Views {
  #made = new Map();

  constructor(store, calls, toolbox) {
    const showRequests = (session) => {
      this.get("waterfall").showSession(session);
      location.hash = "#waterfall";
    };
    this.makers = {
      waterfall: () => new Waterfall(store),
      questions: () => new Questions(store),
      servers: () => new Servers(store, { calls, toolbox }),
      sessions: () => new Sessions(store, { showRequests }),
      tasks: () => new Tasks(store),
      timers: () => new Timers(store),
      events: () => eventsView(store),
      logs: () => logsView(store),
    };
  }

  get(name) {
    if (!this.#made.has(name)) this.#made.set(name, this.makers[name]());
    return this.#made.get(name);
  }
}

class Shell {
  #name = null;

  constructor(store, views) {
    this.store = store;
    this.views = views;
    this.main = document.getElementById("main");
    this.sidebar = new Sidebar(store, { onHelp: showHelp });
    this.attention = new Attention(store);
    store.subscribe((topics) => this.#update(topics));
    everySecond(() => this.#tick());
    addEventListener("hashchange", () => this.show());
    listenToKeys({ current: () => this.#name, waterfall: () => views.get("waterfall") });
    document.getElementById("skip").addEventListener("click", (event) => {
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

  #update(topics) {
    this.sidebar.update();
    this.attention.update(TITLES.get(this.#name));
    this.views.get(this.#name).update(topics);
    if (this.#name !== "questions" && topics.has("sessions")) this.views.get("questions").update(topics);
  }

  #tick() {
    this.sidebar.update();
    this.views.get(this.#name).tick?.();
  }
}

function route(hash) {
  const [name, ...rest] = hash.replace(/^#/, "").split("/");
  try {
    return TITLES.has(name) ? [name, decodeURIComponent(rest.join("/"))] : ["waterfall", ""];
  } catch {
    return [name, ""];
  }
}

start();
