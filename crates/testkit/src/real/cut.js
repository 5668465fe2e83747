// Loaded into Azurite before its own code. It writes down what it has answered every five seconds
// only, so that SIGKILL makes it forget what a real service never would. SIGUSR2 is the end as a
// client of a real service sees it: every connection breaks at once, and what was answered is kept.
const net = require("net");
const Module = require("module");

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
