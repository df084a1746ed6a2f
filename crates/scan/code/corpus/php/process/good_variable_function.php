<?php
$name = "str" . "toupper";
echo $name($_POST["line"]);
