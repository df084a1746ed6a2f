export function run<T>(source: string): T {
  return eval(source) as T;
}
