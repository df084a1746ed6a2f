<?php
$blob = file_get_contents("blob.txt");
echo strlen(gzinflate(base64_decode($blob)));
