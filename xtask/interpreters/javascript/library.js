// The rest of what scripts written for Node most often use, over QuickJS's own `std` and `os`. No network, no processes: there
// are none.
(function (std, os, environment) {
const plain = /^[A-Za-z_$][A-Za-z0-9_$]*$/;

function inspect(value, depth = 0, seen = []) {
  switch (typeof value) {
    case "string": return depth === 0 ? value : "'" + value.replace(/\\/g, "\\\\").replace(/'/g, "\\'").replace(/\n/g, "\\n") + "'";
    case "bigint": return value + "n";
    case "symbol": return value.toString();
    case "function": return value.name ? `[Function: ${value.name}]` : "[Function (anonymous)]";
    case "object": break;
    default: return Object.is(value, -0) ? "-0" : String(value);
  }
  if (value === null) return "null";
  if (seen.includes(value)) return "[Circular *1]";
  if (value instanceof Error) return value.stack ? `${value}\n${value.stack.trimEnd()}` : String(value);
  if (value instanceof RegExp) return String(value);
  if (value instanceof Date) return isNaN(value) ? "Invalid Date" : value.toISOString();
  if (depth > 3) return Array.isArray(value) ? "[Array]" : "[Object]";
  const below = (part) => inspect(part, depth + 1, [...seen, value]);
  const name = (key) => typeof key === "symbol" ? `[${String(key)}]` : plain.test(key) ? key : below(key);
  const wrapped = (open, parts, close) => {
    if (parts.length === 0) return open + close;
    const line = `${open} ${parts.join(", ")} ${close}`;
    if (line.length <= 72 && !line.includes("\n")) return line;
    return `${open}\n${parts.map((part) => "  " + part.replace(/\n/g, "\n  ")).join(",\n")}\n${close}`;
  };
  if (Array.isArray(value)) {
    const parts = value.slice(0, 100).map(below);
    if (value.length > 100) parts.push(`... ${value.length - 100} more items`);
    return wrapped("[", parts, "]");
  }
  if (ArrayBuffer.isView(value)) return wrapped(`${value.constructor.name}(${value.length}) [`, [...value].slice(0, 100).map(below), "]");
  if (value instanceof Map) return wrapped(`Map(${value.size}) {`, [...value].map(([key, part]) => `${below(key)} => ${below(part)}`), "}");
  if (value instanceof Set) return wrapped(`Set(${value.size}) {`, [...value].map(below), "}");
  if (value instanceof Promise) return "Promise {}";
  const kind = Object.getPrototypeOf(value)?.constructor?.name;
  const open = kind && kind !== "Object" ? `${kind} {` : kind ? "{" : "[Object: null prototype] {";
  return wrapped(open, Reflect.ownKeys(value).filter((key) => Object.prototype.propertyIsEnumerable.call(value, key)).map((key) => `${name(key)}: ${below(value[key])}`), "}");
}

function format(first, ...rest) {
  if (typeof first !== "string") return [first, ...rest].map((part) => inspect(part)).join(" ");
  const text = first.replace(/%[sdifjoO%]/g, (mark) => {
    if (mark === "%%") return "%";
    if (rest.length === 0) return mark;
    const next = rest.shift();
    switch (mark) {
      case "%s": return inspect(next);
      case "%d": return String(Number(next));
      case "%i": return String(parseInt(next));
      case "%f": return String(parseFloat(next));
      case "%j": return JSON.stringify(next);
      default: return inspect(next, 1);
    }
  });
  return [text, ...rest.map((part) => inspect(part))].join(" ");
}

const encode = (text) => { const bytes = []; for (const letter of text) { const code = letter.codePointAt(0); if (code < 0x80) bytes.push(code); else if (code < 0x800) bytes.push(0xc0 | code >> 6, 0x80 | code & 63); else if (code < 0x10000) bytes.push(0xe0 | code >> 12, 0x80 | code >> 6 & 63, 0x80 | code & 63); else bytes.push(0xf0 | code >> 18, 0x80 | code >> 12 & 63, 0x80 | code >> 6 & 63, 0x80 | code & 63); } return new Uint8Array(bytes); };

function trouble(code, number, call, path) {
  return Object.assign(new Error(`${code}: ${call} '${path}'`), { code, errno: -number, syscall: call, path });
}
const names = { 2: "EACCES", 8: "EBADF", 20: "EEXIST", 31: "EISDIR", 44: "ENOENT", 54: "ENOTDIR", 55: "ENOTEMPTY", 63: "EPERM", 69: "EROFS", 76: "ENOTCAPABLE" };
function checked(number, call, path) {
  if (number !== 0) throw trouble(names[Math.abs(number)] ?? `E${Math.abs(number)}`, Math.abs(number), call, path);
}
function opened(path, mode, call) {
  const problem = {};
  const file = std.open(String(path), mode, problem);
  if (!file) checked(problem.errno, call, path);
  return file;
}
const asked = (options) => typeof options === "string" ? options : options?.encoding;
const makers = {
  fs: () => {
    const fs = {
      readFileSync(path, options) {
        const file = path === 0 || path === "/dev/stdin" ? std.in : opened(path, "rb", "open");
        if (asked(options)) { const text = file.readAsString(); if (file !== std.in) file.close(); return text; }
        const parts = []; const part = new Uint8Array(65536);
        for (let count; (count = file.read(part.buffer, 0, part.length)) > 0;) parts.push(...part.subarray(0, count));
        if (file !== std.in) file.close();
        return Object.assign(new Uint8Array(parts), { toString() { return decodeURIComponent(Array.from(this, (byte) => "%" + byte.toString(16).padStart(2, "0")).join("")); } });
      },
      writeFileSync(path, data, options) { put(path, data, options?.flag ?? "w"); },
      appendFileSync(path, data) { put(path, data, "a"); },
      existsSync: (path) => os.stat(String(path))[1] === 0,
      statSync(path) { return stat(os.stat, path); },
      lstatSync(path) { return stat(os.lstat ?? os.stat, path); },
      readdirSync(path) { const [list, number] = os.readdir(String(path)); checked(number, "scandir", path); return list.filter((name) => name !== "." && name !== "..").sort(); },
      mkdirSync(path, options) {
        if (!options?.recursive) return checked(os.mkdir(String(path)), "mkdir", path);
        const parts = String(path).split("/");
        for (let at = 1; at <= parts.length; at++) { const part = parts.slice(0, at).join("/"); if (part && !fs.existsSync(part)) { const number = os.mkdir(part); if (at === parts.length) checked(number, "mkdir", path); } }
      },
      unlinkSync(path) { checked(os.remove(String(path)), "unlink", path); },
      rmdirSync(path) { checked(os.remove(String(path)), "rmdir", path); },
      rmSync(path, options) {
        if (!fs.existsSync(path)) { if (options?.force) return; checked(-44, "rm", path); }
        if (fs.lstatSync(path).isDirectory() && options?.recursive) fs.readdirSync(path).forEach((name) => fs.rmSync(`${path}/${name}`, options));
        checked(os.remove(String(path)), "rm", path);
      },
      renameSync(from, to) { checked(os.rename(String(from), String(to)), "rename", from); },
      copyFileSync(from, to) { fs.writeFileSync(to, fs.readFileSync(from)); },
    };
    function put(path, data, mode) {
      const bytes = typeof data === "string" ? encode(data) : data;
      const file = opened(path, mode + "b", "open");
      file.write(bytes.buffer, bytes.byteOffset, bytes.byteLength);
      if (file.close() < 0) checked(-29, "write", path);
    }
    function stat(call, path) {
      const [found, number] = call(String(path));
      checked(number, "stat", path);
      const kind = (bits) => (found.mode & os.S_IFMT) === bits;
      return { size: found.size, mtimeMs: found.mtime, mtime: new Date(found.mtime), mode: found.mode, isFile: () => kind(os.S_IFREG), isDirectory: () => kind(os.S_IFDIR), isSymbolicLink: () => kind(os.S_IFLNK ?? -1) };
    }
    fs.promises = Object.fromEntries(Object.entries(fs).filter(([name]) => name.endsWith("Sync")).map(([name, call]) => [name.slice(0, -4), async (...parts) => call(...parts)]));
    return fs;
  },
  path: () => {
    const normalize = (path) => { const parts = []; for (const part of path.split("/")) { if (part === "..") { if (parts.length && parts.at(-1) !== "..") parts.pop(); else if (!path.startsWith("/")) parts.push(part); } else if (part && part !== ".") parts.push(part); } return (path.startsWith("/") ? "/" : "") + parts.join("/") || "."; };
    const basename = (path, end = "") => { const last = path.replace(/\/+$/, "").split("/").pop(); return end && last.endsWith(end) && last !== end ? last.slice(0, -end.length) : last; };
    const path = {
      sep: "/", delimiter: ":", normalize, basename,
      join: (...parts) => normalize(parts.filter(Boolean).join("/") || "."),
      dirname: (name) => { const end = name.replace(/\/+$/, "").lastIndexOf("/"); return end < 0 ? "." : end === 0 ? "/" : name.slice(0, end); },
      extname: (name) => { const last = basename(name); const dot = last.lastIndexOf("."); return dot > 0 ? last.slice(dot) : ""; },
      isAbsolute: (name) => name.startsWith("/"),
      resolve: (...parts) => { let whole = ""; for (const part of [process.cwd(), ...parts]) whole = part.startsWith("/") ? part : `${whole}/${part}`; const found = normalize(whole); return found.length > 1 ? found.replace(/\/$/, "") : found; },
      relative: (from, to) => { const [a, b] = [from, to].map((name) => path.resolve(name).split("/").filter(Boolean)); while (a.length && b.length && a[0] === b[0]) { a.shift(); b.shift(); } return [...a.map(() => ".."), ...b].join("/"); },
    };
    path.posix = path;
    return path;
  },
  os: () => ({ EOL: "\n", platform: () => "wasi", type: () => "WASI", arch: () => "wasm32", cpus: () => [{}], homedir: () => environment.HOME ?? "/", tmpdir: () => "/tmp", hostname: () => "belljar", totalmem: () => 0, freemem: () => 0 }),
  util: () => ({ inspect: (value) => inspect(value, 1), format, promisify: (call) => (...parts) => new Promise((good, bad) => call(...parts, (error, value) => error ? bad(error) : good(value))), types: {} }),
  assert: () => {
    const fail = (message) => { throw Object.assign(new Error(message), { name: "AssertionError", code: "ERR_ASSERTION" }); };
    const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);
    const assert = (held, message) => { if (!held) fail(message ?? "it does not hold"); };
    const differ = (a, b, message) => fail(message ?? `${inspect(a, 1)} differs from ${inspect(b, 1)}`);
    return Object.assign(assert, { ok: assert, equal: (a, b, message) => { if (a != b) differ(a, b, message); }, strictEqual: (a, b, message) => { if (!Object.is(a, b)) differ(a, b, message); }, deepEqual: (a, b, message) => { if (!same(a, b)) differ(a, b, message); }, deepStrictEqual: (a, b, message) => { if (!same(a, b)) differ(a, b, message); }, throws: (call, message) => { try { call(); } catch { return; } fail(message ?? "nothing was thrown"); } });
  },
  events: () => { class EventEmitter { #calls = {}; on(name, call) { (this.#calls[name] ??= []).push(call); return this; } once(name, call) { const once = (...parts) => { this.off(name, once); call(...parts); }; return this.on(name, once); } off(name, call) { this.#calls[name] = (this.#calls[name] ?? []).filter((known) => known !== call); return this; } emit(name, ...parts) { const calls = this.#calls[name] ?? []; calls.slice().forEach((call) => call.apply(this, parts)); return calls.length > 0; } } EventEmitter.EventEmitter = EventEmitter; return EventEmitter; },
  process: () => globalThis.process,
};
makers["fs/promises"] = () => requireFrom("/")("fs").promises;
const loaded = new Map();

function requireFrom(folder) {
  return function require(asked) {
    const name = asked.startsWith("node:") ? asked.slice(5) : asked;
    if (Object.hasOwn(makers, name)) {
      if (!loaded.has(name)) loaded.set(name, makers[name]());
      return loaded.get(name);
    }
    if (!/^(\.{0,2}\/)/.test(name)) throw Object.assign(new Error(`Cannot find module '${asked}': only a few of Node's own and files are known here`), { code: "MODULE_NOT_FOUND" });
    const path = requireFrom("/")("path");
    const from = path.isAbsolute(name) ? name : path.join(folder, name);
    const file = ["", ".js", ".cjs", ".json", "/index.js"].map((end) => from + end).find((known) => { const [found, number] = os.stat(known); return number === 0 && (found.mode & os.S_IFMT) === os.S_IFREG; });
    if (!file) throw Object.assign(new Error(`Cannot find module '${asked}'`), { code: "MODULE_NOT_FOUND" });
    if (loaded.has(file)) return loaded.get(file).exports;
    const module = { exports: {}, filename: file, id: file };
    loaded.set(file, module);
    const text = std.loadFile(file);
    if (file.endsWith(".json")) return module.exports = JSON.parse(text);
    const call = std.evalScript(`(function (exports, require, module, __filename, __dirname) {${text}\n})`, { backtrace_barrier: true });
    call.call(module.exports, module.exports, requireFrom(path.dirname(file)), module, file, path.dirname(file));
    return module.exports;
  };
}
return { inspect, format, requireFrom };
})
