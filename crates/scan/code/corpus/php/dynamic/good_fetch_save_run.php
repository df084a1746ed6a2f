<?php
file_put_contents('/tmp/words.txt', file_get_contents('https://data.example/words.txt'));
echo count(file('/tmp/words.txt'));
