import { listFiles, readFile } from './files.js';
import { firstError, MadeUpLog, read, search } from './log-text.js';
import { keepForDownload } from './server.js';
import { Refused } from './verbs.js';

/** The calls that are no verbs, by name. Each gets the context of the server and the arguments. */
export const CALLS = {
  about: ({ world }) => ({
    version: '1.5.0',
    api: 1,
    user: 'ann',
    host: 'box',
    folder: '/home/ann/vision',
    project: '/home/ann/vision',
    clusters: [
      { name: 'local', kind: 'local' },
      { name: 'lab', kind: 'slurm' },
      { name: 'aml-west', kind: 'azureml' },
      { name: 'sing', kind: 'azureml' },
    ],
    default_cluster: 'local',
    now: new Date(world.now()).toISOString(),
  }),
  'runs.page': ({ world }, args) => world.page(args),
  'runs.get': ({ world }, { ids }) => ({ runs: ids.map((id) => world.runs.find((run) => run.id === id)).filter(Boolean) }),
  'runs.words': ({ world }) => world.words(),
  'logs.list': ({ world }, { run }) => world.listLogs(run),
  'logs.read': ({ world }, args) => read(world.log(args), args.from, args.lines),
  'logs.search': ({ world }, args) => {
    try {
      return search(world.log(args), args);
    } catch (error) {
      throw new Refused(error.message, [], 'usage', 120);
    }
  },
  'logs.error': ({ world }, args) => firstError(world.log(args)),
  'events.logs': ({ open }, { stream, logs }) => {
    const found = [...open].find(({ events }) => events.name === stream);
    if (!found) throw new Refused(`no stream \`${stream}\``);
    found.events.follow(logs);
    return {};
  },
  'files.list': (_, args) => listFiles(args),
  'files.read': (_, args) => readFile(args) ?? refuse(`no file \`${args.path}\``),
  download: ({ world, downloads }, { log, path }) => {
    if (!log) return keepForDownload(downloads, path ?? 'file', 'content');
    const found = world.log(log);
    const bytes = found instanceof MadeUpLog ? found.lines(0, 1000).join('\n') : found.slice(0);
    return keepForDownload(downloads, `${log.run}.log`, bytes);
  },
};

function refuse(message) {
  throw new Refused(message);
}
