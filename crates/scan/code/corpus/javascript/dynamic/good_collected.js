const http = require('http');

http.get('http://cdn.example/a.json', response => {
  let text = '';
  response.on('data', part => { text += part; });
  response.on('end', () => console.log(JSON.parse(text).length));
});
