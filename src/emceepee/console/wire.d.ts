/**
 * The messages of the console's routes to the page: see feed.py, rows.py and sessions/views.py.
 * Times are ISO text or epoch milliseconds.
 */
declare namespace Wire {
  interface Hello {
    version: string;
    principal: string;
    now: number;
  }

  interface Session {
    id: string;
    label?: string | null;
    transport: string;
    openedAt: string;
    isAwake: boolean;
    canEnd: boolean;
    servers: Server[];
    disabledServers?: DisabledServer[];
    questions: Question[];
    tasks: Task[];
    timers: Timer[];
  }

  interface Server {
    name: string;
    status: string;
    connected: boolean;
    url?: string;
    connectedAt?: string;
    lastError?: string | null;
    authorizationUrl?: string;
    authorizationServer?: string;
    reconnectAttempt?: number;
    nextRetryMs?: number;
    healthStatus?: string;
    consecutiveHealthFailures?: number;
    protocolVersion?: string | null;
    tools?: number;
    recording?: boolean;
    process?: { pid?: number; restarts: number };
    /** True for a server of the configuration file, false for an added one. */
    isConfigured?: boolean;
  }

  interface DisabledServer {
    name: string;
    url: string;
    /** True if disabled in the configuration file, false if a person disabled it here. */
    isConfigured?: boolean;
  }

  /** A server as `add_server` accepts it. */
  interface ServerEntry {
    name: string;
    description?: string;
    url?: string;
    command?: string;
    type?: string;
    headers?: { [name: string]: string };
    args?: string[];
    env?: { [name: string]: string };
    cwd?: string;
    allowedTools?: string[];
    deniedTools?: string[];
    timeout_ms?: number;
    [other: string]: any;
  }

  /** An elicitation (a form, or a link) or a sampling request. */
  interface Question {
    kind: string;
    requestId: string;
    server: string;
    timestamp: string;
    expiresAt: string;
    mode?: string;
    message?: string;
    requestedSchema?: unknown;
    url?: string;
    systemPrompt?: unknown;
    messages?: any;
    modelPreferences?: { [key: string]: any };
    maxTokens?: number;
    temperature?: number;
    stopSequences?: any;
    tools?: any;
  }

  /**
   * One problem of an input. `field` is null if it concerns no field in particular, `code` if no schema keyword names
   * it.
   */
  interface Problem {
    field: string | null;
    code: string | null;
    message: string;
  }

  interface Progress {
    progress?: number;
    total?: number;
    message?: string;
  }

  interface Task {
    taskId: string;
    server: string;
    toolName: string;
    status: string;
    statusMessage?: string;
    createdAt: string;
    lastUpdatedAt: string;
    ttl: number;
    hasResult?: boolean;
    error?: string | null;
    progress?: Progress | null;
  }

  interface Timer {
    timerId: string;
    status: string;
    message?: string;
    expiresAt: string;
    durationMs: number;
    interval?: boolean;
    fireCount: number;
  }

  /** One row of the waterfall. The times of its phases are milliseconds since its start. */
  interface RequestRow {
    id: string;
    session: string;
    type: string;
    name: string;
    status: string;
    startedAt: number;
    endedAt?: number;
    server?: string;
    error?: string;
    taskId?: string;
    parent?: string;
    progress?: Progress;
    phases: Phase[];
    /** Sent once, with the first version of the row. */
    args?: unknown;
  }

  interface Phase {
    kind: string;
    from: number;
    to?: number | null;
  }

  interface Overview {
    sampleMs: number;
    samples: OverviewSample[];
  }

  /** The activity in the sample interval before `at`, and the state at that time; null means unknown. */
  interface OverviewSample {
    at: number;
    requests: number;
    errors: number;
    slowestMs: number | null;
    waiting: number | null;
    memory: number | null;
  }

  interface SessionEvent {
    session: string;
    id: string;
    type: string;
    server?: string | null;
    createdAt: string;
    data?: any;
  }

  interface Log {
    session: string;
    server: string;
    timestamp: string;
    level: string;
    source: string;
    logger?: string;
    data: unknown;
    /** In the details of a request: other requests were running, and the line may belong to one of them. */
    isUnsure?: boolean;
  }

  /** One request in full. */
  interface RequestDetail {
    args?: any;
    result?: ToolResult | null;
    isCut?: boolean;
    logs: Log[];
  }

  /** The answer to `tools/call`. It comes from a server, so each use checks the value that it reads. */
  interface ToolResult {
    content?: any;
    structuredContent?: any;
    isError?: boolean;
  }

  /** A resource, which has an address, or a template for such addresses. */
  interface Resource {
    uri?: string;
    uriTemplate?: string;
    name?: string;
    title?: string;
    description?: string;
    mimeType?: string;
  }

  interface Prompt {
    name: string;
    title?: string;
    description?: string;
    arguments?: { name: string; title?: string; description?: string; required?: boolean }[];
  }

  interface Tool {
    name: string;
    title?: string;
    description?: string;
    inputSchema?: unknown;
    outputSchema?: unknown;
    annotations?: { [key: string]: any };
  }
}
