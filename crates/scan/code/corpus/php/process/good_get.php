<?php
$host = escapeshellarg("localhost");
echo $host;
