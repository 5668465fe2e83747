// Loaded into Azurite before its own code. It writes down what it has answered every five seconds
// only, so that SIGKILL makes it forget what a real service never would. SIGUSR2 is the end as a
// client of a real service sees it: every connection breaks at once, and what was answered is kept.
//
// A request whose method and path are those of the one line in the file TOW_CUT_RULE (method, part,
// what) has its trouble, and the file is gone: `cut` breaks the connection, `busy` says 503, and with
// `lost` it takes effect and its answer does not come. Only of clients that use the account's host name.
const fs = require("fs");
const http = require("http");
const https = require("https");
const net = require("net");
const Module = require("module");

function strikes(request, answer) {
  let rule;
  try {
    rule = fs.readFileSync(process.env.TOW_CUT_RULE, "utf8").split("\t");
  } catch {
    return false;
  }
  const [method, part, what] = rule;
  if (!(request.headers.host || "").includes(".blob.") || method !== request.method || !request.url.includes(part)) {
    return false;
  }
  fs.unlinkSync(process.env.TOW_CUT_RULE);
  if (what === "lost") {
    answer.writeHead = () => answer;
    answer.write = () => true;
    answer.end = () => request.socket.destroy();
    return false;
  }
  if (what === "busy") {
    request.resume();
    answer.writeHead(503, { "x-ms-error-code": "ServerBusy", "Content-Length": 0 });
    answer.end();
  } else {
    request.socket.destroy();
  }
  return true;
}

if (process.env.TOW_CUT_RULE) {
  for (const server of [http.Server, https.Server]) {
    const emit = server.prototype.emit;
    server.prototype.emit = function (event, ...words) {
      return event === "request" && strikes(...words) ? true : emit.call(this, event, ...words);
    };
  }
}

const open = new Set();
let ends = false;
const listen = net.Server.prototype.listen;
net.Server.prototype.listen = function (...words) {
  this.on("connection", (socket) => {
    if (ends) {
      socket.resetAndDestroy();
      return;
    }
    open.add(socket);
    socket.once("close", () => open.delete(socket));
  });
  return listen.apply(this, words);
};

// Its databases, found when they are made: its own way to end may wait for minutes on its collector of garbage.
const databases = new Set();
const load = Module._load;
Module._load = function (name, ...rest) {
  const found = load.call(this, name, ...rest);
  if (name === "lokijs" && !found.isWatched) {
    found.isWatched = true;
    const configure = found.prototype.configureOptions;
    found.prototype.configureOptions = function (...words) {
      databases.add(this);
      return configure.apply(this, words);
    };
  }
  return found;
};

process.once("SIGUSR2", async () => {
  ends = true;
  for (const socket of open) {
    socket.resetAndDestroy();
  }
  await Promise.all([...databases].map((database) => new Promise((saved) => database.saveDatabase(saved))));
  process.kill(process.pid, "SIGKILL");
});
