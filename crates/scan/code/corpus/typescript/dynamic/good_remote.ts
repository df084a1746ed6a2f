export async function patch(url: string): Promise<number> {
  const text: string = await (await fetch(url)).text();
  return text.length;
}
