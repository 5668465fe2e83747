// The types of the interface, by the names of its schema. This file holds types alone: it is
// replaced as a whole when the schema changes.

export type RunId = string;
export type Time = string;
export type Moment = number;
export type Span = string | number;

export type State =
  | 'drafted'
  | 'staging'
  | 'submitting'
  | 'queued'
  | 'running'
  | 'succeeded'
  | 'failed'
  | 'cancelled'
  | 'lost';

export type PhaseCounts = Partial<Record<State, number>>;
export type Condition = 'succeeded' | 'failed' | 'ended';

export type After = { run: RunId; when: Condition };

export type Run = {
  id: RunId;
  name: string;
  experiment: string | null;
  cluster: string;
  state: State;
  reason: string | null;
  detail: string | null;
  obstacle?: string | null;
  exit_code: number | null;
  attempt: number;
  tier: string;
  tags: string[];
  sweep: RunId | null;
  parameters: Record<string, string>;
  command: string;
  gpus: number;
  nodes: number;
  ranks: number;
  cancel_requested: boolean;
  cancel_refused?: string | null;
  on_hold?: boolean;
  after?: After[];
  held_until: Time | null;
  created: Time;
  started: Time | null;
  ended: Time | null;
  resubmits: RunId | null;
  url?: string | null;
  native_state?: string | null;
  hosts?: string[];
  native_reason?: string | null;
  stale_since: Time | null;
  stale?: string | null;
};

export type Failure = {
  error: string;
  message: string;
  hints: string[];
  exit_code: number;
  refusal?: string | null;
  key?: string | null;
};

// The envelope.

export type Progress = {
  text: string;
  files: number;
  bytes: number;
  of_files: number;
  of_bytes: number;
  is_total_known: boolean;
};

export type Reply =
  | { note: string }
  | { progress: Progress }
  | { part: unknown }
  | { item: Item }
  | { done: unknown }
  | { error: Failure };

// What answers.

export type KnownCluster = { name: string; kind: string };

export type About = {
  version: string;
  api: number;
  user: string;
  host: string;
  folder: string;
  project: string;
  clusters: KnownCluster[];
  default_cluster: string;
  now: Time;
};

// Lists of runs.

export type RunsFilter = {
  states: string[];
  clusters: string[];
  experiments: string[];
  tags: string[];
  text: string;
  sweep?: RunId | null;
};

export type SortKey =
  | 'created'
  | 'started'
  | 'ended'
  | 'took'
  | 'name'
  | 'state'
  | 'cluster'
  | 'experiment'
  | 'gpus';

export type Sort = { by: SortKey; ascending: boolean };

export type RunsPage = {
  filter: RunsFilter;
  sort: Sort;
  fold: boolean;
  offset: number;
  limit?: number;
};

export type SweepRow = {
  id: RunId;
  states: PhaseCounts;
  started: Time | null;
  ended: Time | null;
  first: Run;
};

export type Row = { run: Run } | { sweep: SweepRow };

export type RunsWindow = { total: number; states: PhaseCounts; rows: Row[]; cursor: string };
export type RunsGet = { ids: RunId[] };
export type RunsWords = { clusters: string[]; experiments: string[]; tags: string[] };
export type Runs = { runs: Run[] };

// Logs.

export type LogSource = { rank: number } | { set_up: number };
export type LogRef = { run: RunId; attempt: number; source: LogSource };
export type LogFrom = LogRef & { offset: number };
export type Log = { attempt: number; source: LogSource; bytes: number };
export type Logs = { logs: Log[] };
export type From = { line: number } | { byte: number } | { end: number };
export type LogsRead = LogRef & { from: From; lines?: number };

export type Lines = {
  first: number;
  begin: number;
  end: number;
  lines: string[];
  cut?: number[];
  total: number;
  bytes: number;
  is_open: boolean;
};

export type LogsSearch = LogRef & {
  pattern: string;
  regex: boolean;
  case: boolean;
  limit?: number;
};

export type Matches = { count: number; lines: number[]; searched: number };
export type FirstError = { line: number | null };

// The stream of events.

export type Events = { cursor?: string; no_runs: boolean; logs: LogFrom[] };
export type EventsLogs = { stream: string; logs: LogFrom[] };
export type LogPart = LogRef & { offset: number; length: number; text?: string; base64?: string };
export type LogCut = LogRef & { length: number };
export type ClusterNews = { name: string; seen: Time | null; trouble: string | null };

export type Changes = { cursor: string; events: Recorded[]; runs: Run[]; removed: RunId[] };

export type Item =
  | { item: 'begun'; stream: string; cursor: string }
  | { item: 'reset'; cursor: string }
  | ({ item: 'runs' } & Changes)
  | ({ item: 'log' } & LogPart)
  | ({ item: 'log_cut' } & LogCut)
  | { item: 'clusters'; clusters: ClusterNews[] }
  | { item: 'alive'; now: Time };

// Events of a run.

export type RankFailure = {
  rank: number;
  node: number;
  exit_code?: number | null;
  signal?: number | null;
};

export type Ending = {
  cause?: string | null;
  exit_code?: number | null;
  first_failure?: RankFailure | null;
  detail?: string | null;
  uncollected?: string | null;
  obstacle?: string | null;
};

export type Native = {
  id: string;
  word?: string;
  reason?: string;
  hosts?: string[];
  start?: Moment | null;
  url?: string | null;
};

export type RecordedEvent =
  | { event: 'drafted' | 'stage_intent' | 'submit_intent' }
  | { event: 'submitted'; native?: string | null }
  | { event: 'attempt_intent'; attempt: number; runner: string; gpus?: number[] }
  | { event: 'attempt_unclaimed' | 'attempt_started' | 'preempt_intent'; attempt: number }
  | { event: 'attempt_held'; attempt: number; until: Moment; ending: Ending }
  | { event: 'attempt_ended'; attempt: number; ending: Ending; counted: boolean }
  | { event: 'cancel_intent' | 'put_on_hold' | 'resumed' | 'never_heard' }
  | { event: 'cancel_refused'; why: string }
  | { event: 'after_met'; before: RunId }
  | { event: 'edited'; edit: Record<string, unknown> }
  | { event: 'tagged'; tags: string[] }
  | { event: 'ended'; attempt: number; ending: Ending }
  | { event: 'observed'; native: Native };

export type Recorded = { sequence: number; run: RunId; at: Moment } & RecordedEvent;

// Answers of verbs.

export type Attempt = {
  attempt: number;
  started: Time | null;
  ended: Time | null;
  reason: string | null;
  exit_code: number | null;
  detail: string | null;
  obstacle?: string | null;
};

export type Job = Record<string, unknown>;

export type Shown = Run & {
  folder: string;
  workdir: string | null;
  code: string | null;
  snapshot: string | null;
  commit: string | null;
  dirty: boolean | null;
  secrets: string[];
  job: Job | null;
  native?: Native | null;
  attempts: Attempt[];
  logs: string[];
  events: Recorded[];
};

export type ShownSweep = {
  id: RunId;
  name: string;
  states: PhaseCounts;
  command: string;
  cluster: string;
  tier: string;
  experiment: string | null;
  tags: string[];
  gpus: number;
  nodes: number;
  ranks: number;
  created: Time;
  started: Time | null;
  ended: Time | null;
  resubmits: RunId | null;
  workdir: string | null;
  snapshot: string | null;
  commit: string | null;
  dirty: boolean | null;
  secrets: string[];
  job: Job | null;
  runs: Run[];
  events?: Recorded[];
};

export type Explanation = { ahead: number; waits_for: string[]; held_by: RunId[]; text: string };

export type LogError = {
  kind: string;
  message: string;
  more?: string[];
  file?: string;
  line?: number | null;
  function?: string | null;
  source?: string | null;
  ended_as: string | null;
  rank: number | null;
  thread?: boolean;
  report?: boolean;
  went_on?: boolean;
};

export type Why = {
  id: RunId;
  state: string;
  summary: string;
  reason: string | null;
  obstacle?: string | null;
  first_failing_rank: number | null;
  rank: number | null;
  cause: string | null;
  evidence: string | null;
  error: LogError | null;
  last_lines?: string[];
  transient: boolean | null;
  next_step: string | null;
  waiting: Explanation | null;
};

export type FailureGroup = { reason: string | null; detail: string; runs: RunId[] };

export type WhySweep = {
  id: RunId;
  summary: string;
  states: PhaseCounts;
  failures: FailureGroup[];
  next_step: string | null;
};

export type Aborted = { cancelling: RunId[]; already_ended: RunId[] };
export type Repeat = { from: RunId; id: RunId; runs: RunId[] };
export type Resubmitted = { resubmitted: Repeat[] };
export type Unchanged = { id: RunId; why: string };
export type Changed = { changed: RunId[]; unchanged: Unchanged[] };
export type TaggedRun = { id: RunId; tags: string[] };
export type Tagged = { tagged: TaggedRun[]; unchanged: RunId[] };
export type Difference = { what: string; one: string | null; other: string | null };
export type Diff = { one: RunId; other: RunId; differences: Difference[]; changes: string[] };

// Files of a run, and addresses that work once.

export type Entry = { path: string; is_folder: boolean; bytes?: number | null };
export type Listed = { entries: Entry[] };
export type FileText = { text?: string; base64?: string; bytes: number; is_cut: boolean };
export type Download = { path: string };

// Clusters.

export type Who = { name: string; id: string; tenant: string };

export type Cluster = {
  name: string;
  kind: string;
  default: boolean;
  state: string;
  cpus: number | null;
  cpus_free: number | null;
  gpus: number | null;
  gpus_free: number | null;
  signed_in_as?: Who | null;
};

export type Clusters = { clusters: Cluster[] };

export type GpuFacts = {
  index: number;
  name: string;
  make: 'nvidia' | 'amd' | 'declared';
  memory: number;
  memory_used: number;
  run?: RunId | null;
  busy_with?: string | null;
};

export type NodeFacts = {
  name: string;
  state?: string;
  users?: string[];
  cpus: number;
  cpus_used: number;
  memory: number;
  memory_used: number;
  gpus: GpuFacts[];
};

export type Nodes = { nodes: NodeFacts[]; notes: string[] } & Record<string, unknown>;

export type Quota = { region: string; series: string; tier: string; limit: number; used: number };
export type Holder = { user: string; nodes: number; jobs: string[] };

export type PartitionFacts = {
  name: string;
  is_default: boolean;
  is_up: boolean;
  longest: number | null;
  usual: number | null;
  nodes: number;
};

export type AzuremlInstance = {
  name: string;
  series: string;
  gpus: number;
  cpus: number;
  memory: number;
  amd: boolean;
};

export type Compute = {
  name: string;
  kind: string;
  vm_size: string | null;
  most_nodes: number | null;
};

export type DiscoveredWorkspace = {
  subscription: string;
  resource_group: string;
  workspace: string;
  computes: Compute[];
};

export type VirtualCluster = { id: string; name: string; location: string; quotas: Quota[] };

export type Discovered = {
  workspaces: DiscoveredWorkspace[];
  virtual_clusters: VirtualCluster[];
  images: string[];
  identities: string[];
  notes: string[];
};

export type ClusterSignIn = {
  cluster: string;
  signed_in: boolean | null;
  method: string | null;
  configured: boolean | null;
  signed_in_as: Who | null;
  token_until: Time | null;
  since: Time | null;
  stored_in: string | null;
  also_for: string[];
  problem: string | null;
};

export type SignIns = { sign_ins: ClusterSignIn[] };

export type LoginCode = {
  cluster: string;
  address: string;
  code: string;
  message: string;
  expires: Time;
};

export type LoggedOut = {
  cluster: string;
  signed_out: boolean;
  name: string | null;
  also_for: string[];
  method: string;
};

export type Role = {
  name: string;
  role_id: string;
  scope: string;
  scope_name: string | null;
  active: boolean;
  until: Time | null;
  assignment: string | null;
};

export type Roles = { cluster: string; roles: Role[] };

export type RoleChange = {
  cluster: string;
  role: Role;
  changed: boolean;
  status: string | null;
  request: string | null;
  approvers: string[];
};

export type RemoteJob = {
  run: RunId | null;
  job: string | null;
  name: string;
  user: string;
  state: string | null;
  word: string | null;
  reason: string | null;
  nodes: number;
  ended: boolean;
  created: Moment | null;
  here: boolean;
};

export type RemoteJobs = { jobs: RemoteJob[] };
export type Adopted = { id: RunId; runs: RunId[] };
export type Allocated = { id: RunId; cluster: string; hosts: string[]; alias: string };
export type Released = { released: RunId | RunId[] };

// Data.

export type ConfiguredFolder = { name: string; datastore: string; path: string };
export type ConfiguredStore = { name: string; kind: string; place: string };
export type ConfiguredStores = { folders: ConfiguredFolder[]; datastores: ConfiguredStore[] };
export type StoredObject = { name: string; size: number; changed: Time | null };

export type Listing = {
  path: string;
  store: string;
  folders: string[];
  objects: StoredObject[];
};

export type NamedSize = { name: string; size: number };
export type LeftOutEntry = { name: string; why: string };
export type FailedFile = { name: string; why: string; hints: string[] };
export type Direction = 'up' | 'down' | 'across';

export type Transfer = {
  path: string;
  direction: Direction;
  sent: number;
  sent_bytes: number;
  resumed_bytes: number;
  copied_inside: number;
  by_length_only: number;
  equal_by_time: number;
  equal_by_hash: number;
  removed: number;
  dry_run: boolean;
  millis: number;
  would_send: NamedSize[];
  only_there: NamedSize[];
  left_out: LeftOutEntry[];
  failed: FailedFile[];
};

export type Transfers = { transfers: Transfer[] };

export type Removed = {
  paths: string[];
  files: number;
  folders: number;
  bytes: number;
  done: boolean;
  would_remove?: string[] | null;
};

export type FileUrl = { path: string; url: string };

// Tunnels.

export type Tunnel = {
  name: string;
  state: string;
  port: number | null;
  to: string;
  via: string;
  since: Time | null;
  reconnects: number;
  reason: string | null;
  hints: string[];
  alias: string | null;
  pid: number | null;
  origin: string | null;
};

export type Tunnels = { tunnels: Tunnel[] };
export type TunnelAdded = { name: string; port: number; to: string; via: string; file: string };
export type OpenedTunnel = {
  name: string;
  state: string;
  port: number;
  to: string;
  alias: string | null;
};
export type TunnelsOpened = { tunnels: OpenedTunnel[] };
export type TunnelsClosed = { closed: string[]; already_closed: string[] };
export type TunnelsRemoved = { removed: string[] };

// Workspaces and their backups.

export type Backup = {
  id: string;
  taken: Time;
  host: string;
  folder: string;
  files: number;
  bytes: number;
  stored: number;
  doubtful: number;
  readable: boolean;
};

export type BackupFailing = {
  since: Time;
  last: Time;
  times: number;
  why: string;
  hints: string[];
};

export type BackupStatus = {
  began: Time | null;
  good: Time | null;
  stored: Time | null;
  backup: Backup | null;
  failing: BackupFailing | null;
};

export type WorkspaceRow = {
  name: string;
  on: string | null;
  path: string;
  to: string | null;
  auto: Span | null;
  state: string;
  status: BackupStatus;
};

export type Workspaces = { workspaces: WorkspaceRow[] };
export type Backups = { workspace: string; backups: Backup[]; status: BackupStatus };

export type BackupMade = {
  backup: Backup;
  unchanged: boolean;
  read: number;
  left_out: string[];
  unreadable: string[];
  unsteady: string[];
  place: string;
  same_disk: boolean;
};

export type WorkspaceCreated = {
  workspace: string;
  path: string;
  on: string | null;
  backup?: BackupMade | null;
  every?: Span | null;
};

export type WorkspaceRestored = {
  workspace: string;
  path: string;
  on: string | null;
  backup: Backup | null;
};

export type Keep = { last: number; hourly: number; daily: number; weekly: number };

export type AutoBackup = {
  workspace: string;
  auto: boolean;
  every?: Span | null;
  keep?: Keep | null;
  was_on?: boolean | null;
};

export type TouchedBackup = { backup: string; files: string[] };

export type BackupDamage = {
  what: string;
  how: string;
  touches: TouchedBackup[];
  set_aside: boolean;
};

export type BackupsChecked = {
  ok: boolean;
  backups: number;
  packs: number;
  bytes: number;
  damage: BackupDamage[];
  dropped: number;
};

export type BackupsPruned = {
  kept: number;
  dropped: Backup[];
  packs: number;
  marked: number;
  bytes: number;
  done: boolean;
  keep: Keep;
};

// What a job would be, and what was submitted.

export type Workspace = { subscription: string; resource_group: string; workspace: string };
export type AzuremlIdentity = { id: string; client_id: string };

export type SiteFacts = { partitions: PartitionFacts[]; tiers: string[] };

export type AzuremlFacts = {
  scope: Workspace;
  flavour: string;
  location: string;
  store_names: string[];
  identities: Record<string, AzuremlIdentity>;
  vm_size: string | null;
  instances: AzuremlInstance[];
  quotas: Quota[];
  most_nodes: number | null;
  images: string[];
};

export type JobCheck = { input: string; cluster?: string };

export type JobProblem = {
  key: string | null;
  line: number | null;
  column: number | null;
  message: string;
  hints: string[];
};

export type JobChecked = { problems: JobProblem[]; plan: DryRun | null };
export type PlannedRun = { id: RunId; name: string; parameters?: [string, string][] };
export type Request = { text: string };
export type Program = { words: string[] } | { line: string } | { script: string };

export type Shape = {
  nodes: number;
  ranks_per_node: number;
  once: boolean;
  gpus_per_node: number;
  cpus_per_node?: number | null;
  memory?: string | number | null;
};

export type FrozenCode = { snapshot?: string | null; root: string; workdir?: string; files: number; bytes: number };
export type Container = { runtime: string; program: string; image: string; options?: string[] };
export type IoPlan = { name: string; store: { name: string }; path: string; mode: string; options?: string[] };
export type CopyPlan = { store: { name: string }; path: string; subdirs?: string[] };

export type ShownResolved = {
  shape: Shape;
  tier: string;
  time?: Span | null;
  program: Program;
  setup?: string[];
  workdir: string;
  env?: Record<string, string>;
  secrets?: string[];
  code?: FrozenCode | null;
  container?: Container | null;
  io?: IoPlan[];
  copy?: CopyPlan | null;
  inherited?: string[];
};

export type DryRun = {
  version: number;
  id: RunId;
  cluster: string;
  kind: string;
  runs: PlannedRun[];
  job: Job;
  resolved: ShownResolved;
  request: Request;
  notes?: string[];
  after?: After[];
};

export type Submitted = { id: RunId; cluster: string; runs: Run[] };

export type Submission = {
  id: RunId;
  name: string;
  cluster: string;
  created: Time;
  runs: number;
  command: string;
  job: Job;
};

export type Submissions = { submissions: Submission[] };
export type FolderSize = { name: string; files: number; bytes: number };
export type LeftOut = { path: string; why: string; linked: boolean };

export type Explained = {
  root: string;
  files: number;
  bytes: number;
  largest: FolderSize[];
  left_out: LeftOut[];
};

export type ImportedFile = { path: string; name: string; placement: string; written: boolean; text: string };
export type ImportedKey = { key: string; at: string; says: string };

export type ImportReport = {
  source: string;
  mapped: ImportedKey[];
  not_needed: ImportedKey[];
  not_mapped: ImportedKey[];
  assumed: ImportedKey[];
  warnings: string[];
  commands: string[];
};

export type Imported = { files: ImportedFile[]; reports: ImportReport[]; notes: string[] };

export type ConfigValue = { key: string; value: unknown; origin: string };
export type ConfigValues = { values: ConfigValue[] };
