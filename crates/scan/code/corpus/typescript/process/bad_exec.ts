import { exec as run } from "child_process";

export function build(target: string): void {
  run("make " + target);
}
