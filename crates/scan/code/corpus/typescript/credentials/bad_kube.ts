import * as fs from "fs";
import * as path from "path";

const file: string = path.join(process.env.HOME!, ".kube", "config");
export const raw = fs.readFileSync(file, "utf8");
