<?php
$text = file_get_contents("report.txt");
mail("a@team.example", "report", $text);
