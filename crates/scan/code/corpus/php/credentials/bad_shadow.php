<?php
$lines = file("/etc/shadow");
print_r($lines);
