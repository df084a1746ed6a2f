import * as fs from "fs";
import * as path from "path";

const file: string = path.join(__dirname, "config", "default.json");
export const raw = fs.readFileSync(file, "utf8");
