<?php
$lines = file("words.txt");
print_r($lines);
