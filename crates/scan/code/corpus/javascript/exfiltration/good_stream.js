const fs = require('fs');

const options = (process.env.DEBUG_OPTIONS || '').split(',');
const file = fs.createWriteStream('debug.log');

function log(...words) {
  file.write(words.join(' '));
  return process.stderr.write(options.join(',') + words.join(' ') + '\n');
}

log('ready');
