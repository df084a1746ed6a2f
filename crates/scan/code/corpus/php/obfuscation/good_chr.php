<?php
$nl = chr(10);
echo "a" . $nl;
