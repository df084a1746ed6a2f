export function run<T>(source: string): T {
  return JSON.parse(source) as T;
}
