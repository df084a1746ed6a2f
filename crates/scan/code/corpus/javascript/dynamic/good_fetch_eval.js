async function update() {
  const answer = await fetch("https://api.example/version");
  const body = await answer.json();
  return body.version;
}
