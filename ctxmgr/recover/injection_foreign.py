"""Patterns of orders in other languages.

Data only; how patterns are written is told in `orders`. They are tried on text without accents in lower case, so they are
written so.
"""

from __future__ import annotations

from ctxmgr.recover.injection_patterns import FEW, HANDS_OVER, HIDES, IGNORES, LEAKS, RECASTS, RENEWS, Order, order

FOREIGN: tuple[Order, ...] = (
    order(
        "de: skip",
        IGNORES,
        "ignorier|vergiss|vergesst|vergessen|missacht|beacht|befolg",
        r"(?:ignorier\w{0,3}|vergiss|vergesst|vergessen sie|missachte\w{0,2}|(?:beachte|befolge)\w{0,2} (?:sie )?(?:ab "
        r"(?:jetzt|sofort) )?(?:nicht|keine)) (?:sie |bitte |alle\w{0,1} |die |deine |meine |eure |ihre |jegliche |samtliche "
        r"|der |von |was ){0,5}(?:vor(?:her)?ig\w{1,2}|bisherig\w{1,2}|obig\w{1,2}|fruher\w{1,2}|ursprunglich\w{1,2}|"
        r"vorangegangen\w{1,2}|vorstehend\w{1,2}|vorangehend\w{1,2}|alten|gegebenen|system\w{0,8}|anweisungen|instruktionen|"
        r"regeln|vorgaben) ?(?:\w{1,16} )?(?:anweisungen|instruktionen|regeln|befehle|vorgaben|kontext|anordnungen|auftrage|"
        r"prompts?|oben|davor|zuvor|bisher)?|(?:beachte|befolge)\w{0,2} (?:sie )?(?:\w{1,14} ){1,4}?(?:anweisungen|"
        r"instruktionen|regeln|befehle|vorgaben|anordnungen) (?:ab (?:jetzt|sofort) )?(?:nicht|keinesfalls)",
    ),
    order(
        "de: skip all",
        IGNORES,
        "vergiss|ignorier",
        r"(?:vergiss|ignoriere?) (?:bitte )?(?:alles|was) (?:\w{1,12} ){0,3}?(?:bisher|zuvor|davor|vorher|oben|gesagt)",
    ),
    order(
        "de: new orders",
        RENEWS,
        "anweisung|auftrag|aufgabe|instruktion|befehl",
        r"(?:neue|aktualisierte|geanderte|wahre|eigentliche)[rsn]? (?:system-?)?(?:anweisung\w{0,2}|instruktion\w{0,2}|"
        r"befehle?|auftrag|aufgabe)(?: (?:fur|von|an) \w{1,14}(?: \w{1,14}){0,2})? ?:|(?:deine|ihre|dein) (?:neue[rsn]?|"
        r"wahre[rsn]?|eigentliche[rsn]?|einzige[rsn]?) (?:aufgabe|auftrag|ziel|rolle) (?:ist|lautet)",
    ),
    order(
        "de: you are now",
        RECASTS,
        "jetzt|nun|sofort",
        r"du bist (?:jetzt|nun|ab sofort|ab jetzt) (?:ein\w{0,2} |der |die |das |kein\w{0,2} |im |nicht mehr )|(?:ab "
        r"(?:jetzt|sofort)|von nun an) (?:bist|musst|wirst|sollst|antwortest) du",
    ),
    order(
        "de: hand over",
        HANDS_OVER,
        "bergib|uebergib|leite|weiter|gib|reiche|ubertrag",
        r"(?:u?e?bergib|u?e?bertrage?|gib|leite|reiche|schicke|sende)(?:en sie|n sie)? (?:sofort |jetzt |bitte |umgehend "
        r")?(?:die |den |das |diese\w? |alle\w? |alles |jede\w? ){0,2}(?:kontrolle|steuerung|aufgabe|sitzung|ablauf|workflow|"
        r"auftrag|anfragen?|vorgang|alles)? ?(?:sofort |jetzt |direkt |umgehend )?(?:an (?!den (?:menschen|kunden|nutzer|"
        r"benutzer))(?:den |die |das )?(?:\w{1,20}[\s_-]?agent\w{0,2}|agent\w{0,2}|\w{1,20}-\w{1,20}|merger|\w{1,20} weiter|"
        r"\w{1,20} ab\b))",
    ),
    order(
        "de: not to the user",
        HIDES,
        "nutzer|anwender|menschen|niemand|betreiber",
        r"(?:sag\w?|sagen sie|erzahle?|erzahlen sie|verrate?|melde|teile|zeige?|erwahne?) (?:es |das |davon |dies |dem |den |"
        r"der |gegenuber ){0,3}(?:be)?(?:nutzer|anwender|menschen|niemand\w{0,2}|betreiber)\w{0,2} (?:\w{1,12} "
        r"){0,2}(?:nicht|nichts|davon)|(?:be)?(?:nutzer|anwender)\w{0,2} (?:darf|soll)\w{0,2} (?:\w{1,10} ){0,3}(?:nicht|"
        r"nichts) (?:\w{1,10} )?(?:erfahren|wissen|merken|bemerken)",
    ),
    order(
        "de: send secrets",
        LEAKS,
        "schlussel|passw|token|zugangsdaten|geheimnis|key",
        r"\b(?:sende|schicke?|maile?|lade|ubertrage|poste|verrate?)(?:en sie|n sie)? (?:mir |uns |bitte |alle\w? |die |den |"
        r"das |deine\w? |ihre\w? |samtliche ){0,4}(?:\w{1,12}[\s-])?(?:api-?)?(?:schlussel|passwort\w?|passworter|"
        r"tokens?|zugangsdaten|geheimnisse|keys?)\b",
    ),
    order(
        "fr: skip",
        IGNORES,
        "ignore|oublie|compte|respecte|suis|suivez&instruction|consigne|regle|directive|ordre|contexte|precede",
        r"\b(?:ignore[zrs]?|oublie[zrs]?|ne (?:tiens|tenez) (?:pas|plus|aucun) compte (?:de|des)|ne (?:suis|suivez|"
        r"respecte[zs]?) (?:plus|pas)) (?:toutes? |tous |tout |les |tes |vos |mes |ces |des |ce |qui |que ){1,5}(?:\w{1,16} "
        r")?(?:instructions|consignes?|regles|directives|ordres|contexte|precede)(?: (?:precedent\w{0,2}|anterieur\w{0,2}|"
        r"ci-dessus|initial\w{0,2}|donnees?|recues?|du systeme|systeme|d'origine|avant|plus haut))?|ne (?:tiens|tenez) "
        r"(?:pas|plus|aucun) compte (?:de |des |du )(?:\w{1,12} ){0,2}?(?:instructions|consignes|regles|directives|contexte|"
        r"prompt)",
    ),
    order(
        "fr: new orders",
        RENEWS,
        "instruction|consigne|mission|tache|role|objectif",
        r"(?:nouvelles?|veritables?|vraies?) (?:instructions?|consignes?|directives?|ordres)(?: (?:pour|du|de) (?:\w{1,14} "
        r"?){1,3})?\s?:|(?:ta|votre|ton) (?:nouvelle?|nouveau|vraie?|veritable|seule?) (?:tache|mission|role|objectif) "
        r"(?:est|consiste)",
    ),
    order(
        "fr: you are now",
        RECASTS,
        "maintenant|desormais|partir",
        r"(?:tu es|vous etes) (?:maintenant|desormais) (?:un|une|le|la|l|en|libre)\b|(?:a partir de maintenant|dorenavant|"
        r"desormais) (?:tu|vous) (?:es|etes|dois|devez|vas|allez|reponds|repondez)",
    ),
    order(
        "fr: hand over",
        HANDS_OVER,
        "transf|pass|remet|donn|transm|confie|envoi|envoy|redirig|rout",
        r"(?:transfere[rz]?|passe[rz]?|remets|remettez|donne[rz]?|transmets|transmettez|confie[rz]?|redirige[rz]?|envoie|"
        r"envoyez|route[rz]?) (?:immediatement |maintenant )?(?:le |la |l|tout |toute |cette |ce |toutes les |tous les "
        r"){0,2}(?:controle|tache|session|flux|execution|requetes?|demandes?|travail|workflow|main)? ?(?:immediatement |"
        r"directement |maintenant )?(?:a |au |vers )(?:l |le |la )?(?:\w{1,16}[\s_-]?agent\w{0,2}|agent\w{0,2}|merger)",
    ),
    order(
        "fr: not to the user",
        HIDES,
        "utilisateur|personne|humain|client",
        r"(?:ne |n)(?:le |la |l |en |lui |leur )?(?:dis|dites|parle[zs]?|informe[zs]?|mentionne[zs]?|revele[zs]?|previens|"
        r"prevenez|avertis\w{0,3}) (?:\w{1,8} ){0,3}?(?:rien|pas|jamais) (?:\w{1,8} ){0,4}?(?:l')?(?:utilisateur|humain|"
        r"operateur|client)",
    ),
    order(
        "fr: send secrets",
        LEAKS,
        "cle|mot|jeton|secret|identifiant|token",
        rf"(?:envoie[zr]?|envoyez|transmets|transmettez|publie[zr]?|poste[zr]?|televerse[zr]?|donne[zr]?-moi) (?:moi |nous |"
        rf"la |les |le |tes |vos |toutes |tous |l ){{0,4}}(?:cles?|mots? de passe|jetons?|secrets?|identifiants|"
        rf"tokens?)\b{FEW} ?(?:a |au |vers |sur )",
    ),
    order(
        "es: skip",
        IGNORES,
        "ignor|olvid|omiso|descart|hagas|sigas|obedezc",
        r"(?:ignora|ignore|ignorar|olvida|olvide|olvidar|haz caso omiso de|haga caso omiso de|descarta|descarte|no (?:sigas|"
        r"obedezcas|hagas caso (?:a|de))) (?:todas? |todos? |las |los |tus |sus |mis |estas |cualquier |lo |que |el |de "
        r"){1,5}(?:\w{1,16} )?(?:instrucciones|instruccion|reglas|ordenes|indicaciones|directrices|contexto|"
        r"anterior\w{0,2})(?: (?:anterior\w{0,2}|previ[ao]s|de arriba|originales|del sistema|recibidas|dadas))?",
    ),
    order(
        "es: skip the user",
        IGNORES,
        "ignora|olvida|ignore|olvide",
        r"(?:ignora|ignore|olvida|olvide) (?:todo )?lo que (?:te |le |se )?(?:dijo|dijeron|digo|ha dicho|pidio|han dicho|"
        r"dije)",
    ),
    order(
        "es: new orders",
        RENEWS,
        "instruccion|instrucciones|tarea|mision|objetivo|ordenes",
        r"nuevas? (?:instruccion|instrucciones|ordenes|directrices)(?: (?:para|del|de) (?:\w{1,14} ?){1,3})?\s?:|(?:tu|su) "
        r"(?:nueva|nuevo|verdadera|verdadero|unica|unico) (?:tarea|mision|objetivo|rol|funcion) (?:es|consiste)",
    ),
    order(
        "es: you are now",
        RECASTS,
        "ahora|partir|adelante",
        r"ahora eres (?:un|una|el|la|libre)\b|(?:a partir de ahora|de ahora en adelante) (?:tu )?(?:eres|debes|vas|responde|"
        r"responderas|actua|actuaras|obedece)",
    ),
    order(
        "es: hand over",
        HANDS_OVER,
        "transf|entreg|pas|ced|deleg|envi|redirig|deriv",
        r"(?:transfiere|transfiera|entrega|entregue|pasa|pase|cede|ceda|delega|delegue|envia|envie|redirige|redirija|deriva|"
        r"derive) (?:inmediatamente |ahora )?(?:el |la |todo |toda |esta |este |todas las |todos los ){0,2}(?:control|tarea|"
        r"sesion|flujo|ejecucion|solicitud\w{0,2}|trabajo|workflow)? ?(?:inmediatamente |directamente |ahora )?(?:al |a |"
        r"hacia )(?:el |la )?(?:\w{1,16}[\s_-]?agent\w{0,2}|agente\w{0,2}|merger)",
    ),
    order(
        "es: not to the user",
        HIDES,
        "usuario|nadie|humano|cliente|operador",
        r"no (?:le |se lo |lo |les )?(?:digas|diga|cuentes|cuente|informes|informe|menciones|mencione|reveles|revele|avises|"
        r"avise) (?:\w{1,8} ){0,4}?(?:usuario|humano|operador|cliente|nadie)",
    ),
    order(
        "es: send secrets",
        LEAKS,
        "clave|contrasen|token|secreto|credencial",
        rf"(?:envia(?:me)?|envie(?:me)?|manda(?:me)?|sube|publica|transmite|comparte|reenvia) (?:la |las |el |los |tus |sus |"
        rf"todas |todos ){{0,4}}(?:claves?|contrasenas?|tokens?|secretos?|credenciales)\b{FEW} ?(?:a |al |hacia |en )",
    ),
    order(
        "pt, it: skip",
        IGNORES,
        "ignor|esquec|dimentic|desconsider",
        r"(?:ignor[ea]|ignorare|esqueca|esquece|desconsidere|dimentica|dimenticare) (?:todas? |todos? |tutte |tutti |as |os |"
        r"le |gli |i |suas |tue |quaisquer ){0,4}(?:\w{1,16} )?(?:instrucoes|regras|ordens|istruzioni|regole|ordini|contesto|"
        r"contexto)",
    ),
    order(
        "zh: skip",
        IGNORES,
        "忽略|无视|無視|忘记|忘掉|忘記|不要理会|不要遵守|不要遵循|抛弃|不再遵守|不再遵循|忽視|忽视",
        r"(?:忽略|无视|無視|忘记|忘掉|忘記|忽視|忽视|不要理会|不要遵守|不要遵循|抛弃|不再遵守|"
        r"不再遵循)[^\n。]{0,12}?(?:之前|以上|先前|上面|前面|此前|之後|所有|一切|全部|原有|你的|系统|"
        r"系統|上述|先前)[^\n。]{0,10}?(?:指令|指示|说明|說明|规则|規則|提示|命令|内容|內容|上下文|"
        r"对话|對話|要求|设定|設定)",
    ),
    order(
        "zh: new orders",
        RENEWS,
        "指令|任务|任務|指示",
        r"(?:新的?|真正的?|更新的?|最新)(?:系统|系統)?(?:指令|任务|任務|指示)\s?(?::|是|如下)|你(?:的)?(?:新|真正)的?(?:任务|任務|目标|身份|角色)是",
    ),
    order(
        "zh: you are now",
        RECASTS,
        "你现在|从现在|你不再|你現在|從現在",
        r"你(?:现在|現在)(?:是|必须|将|要)(?!否)|(?:从|從)(?:现在|現在)(?:起|开始|開始),?\s?你|你不再(?:是|受)",
    ),
    order(
        "zh: hand over",
        HANDS_OVER,
        "转交|移交|交给|路由|转给|切换|轉交|交給|转移",
        r"(?:转交|移交|交给|路由到|路由给|转给|切换到|轉交|交給|转移)(?:给|到|給)?[^\n。]{0,16}?(?:代理|智能体|智能體|agent|merger|bot)",
    ),
    order(
        "zh: not to the user",
        HIDES,
        "告诉|知道|告訴|透露|提及|通知",
        r"(?:不要|别|不得|切勿|請勿|请勿)(?:告诉|告訴|通知|让|讓|向)[^\n。]{0,3}(?:用户|用戶|人类|任何人|操作员|使用者)",
    ),
    order(
        "zh: send secrets",
        LEAKS,
        "密钥|密码|令牌|token|凭证|密鑰|密碼|key",
        r"(?:发送|上传|发给|发到|提交|發送|上傳|泄露|发布|把|将)[^\n。]{0,20}?(?:密钥|密码|令牌|"
        r"token|凭证|凭据|密鑰|密碼|api\s?key)[^\n。]{0,12}?(?:到|给|至|發|发|http|"
        r"@)",
    ),
    order(
        "ru: skip",
        IGNORES,
        "игнорир|забуд|внимания|отброс|следу|пренебр",
        r"(?:про)?(?:игнорируи\w{0,2}|забудь\w{0,2}|не обращаи\w{0,2} внимания на|отбрось\w{0,2}|не следуи\w{0,2}|"
        r"пренебреги\w{0,2}) (?:все\w{0,2} |обо |о |про |мои |твои |свои |эти |любые |на |что |было ){0,5}(?:\w{1,16} "
        r"){0,2}?(?:инструкци\w{1,3}|указани\w{1,3}|правил\w{0,3}|команд\w{0,3}|контекст\w{0,2}|распоряжени\w{1,3}|"
        r"сообщени\w{1,3}|выше|ранее|раньше)",
    ),
    order(
        "ru: new orders",
        RENEWS,
        "инструкци|указани|задач|задани",
        r"новы[ие] (?:системные )?(?:инструкци\w{1,2}|указани\w{1,2}|распоряжени\w{1,2}|команды)(?: (?:для|от) (?:\w{1,14} "
        r"?){1,3})?\s?:|тво[яеи]\w? (?:нов\w{2}|настоящ\w{2}|единственн\w{2}) (?:задача|задание|цель|роль)",
    ),
    order(
        "ru: you are now",
        RECASTS,
        "теперь|отныне|этого момента",
        r"(?:теперь|отныне) (?:ты|вы) (?!сможе|може|готов)|ты (?:теперь|отныне) (?!сможе|може|готов)|с этого момента (?:ты|"
        r"вы)",
    ),
    order(
        "ru: hand over",
        HANDS_OVER,
        "переда|перенаправ|направ|переключ|отправ",
        r"(?:переда(?:и|ть|ите)|перенаправь\w{0,2}|направь\w{0,2}|переключи\w{0,2}|отправь\w{0,2}) (?:\w{1,16} "
        r"){0,3}?(?:агент\w{0,2}|\w{1,20}[_-]agent|merger|\w{1,20}agent)",
    ),
    order(
        "ru: not to the user",
        HIDES,
        "пользовател|никому|человек|оператор",
        r"не (?:говори\w{0,2}|сообщаи\w{0,2}|рассказываи\w{0,2}|раскрываи\w{0,2}|упоминаи\w{0,2}|показываи\w{0,2}|"
        r"уведомляи\w{0,2}) (?:\w{1,8} ){0,3}?(?:пользовател\w{0,2}|никому|человеку|оператору)",
    ),
    order(
        "ru: send secrets",
        LEAKS,
        "ключ|парол|токен|секрет",
        r"(?:отправь\w{0,2}|пришли\w{0,2}|загрузи\w{0,2}|перешли\w{0,2}|скопируи\w{0,2}|опубликуи\w{0,2}) (?:мне |нам |все |"
        r"свои |твои |эти ){0,4}(?:\w{1,16} )?(?:api )?(?:ключ\w{0,2}|парол\w{1,3}|токен\w{0,2}|секрет\w{0,2})",
    ),
    order(
        "ja: skip",
        IGNORES,
        "無視|忘れ|破棄|従わな|従うな",
        r"(?:以前|これまで|今まで|上記|前|先|すべて|全て|全部|元|システム|"
        r"あなた)(?:まで)?の?[^\n。]{0,8}?(?:指示|命令|ルール|規則|プロンプト|コンテキスト|文脈|内容|"
        r"会話|制約)[^\n。]{0,8}?(?:無視|忘れ|破棄|従わな|従うな)",
    ),
    order(
        "ja: new orders",
        RENEWS,
        "指示|命令|タスク",
        r"(?:新しい|新たな|本当の|更新された)(?:システム)?(?:指示|命令|タスク|任務)\s?(?::|は|です)",
    ),
    order(
        "ja: you are now",
        RECASTS,
        "これから|今から|今後",
        r"(?:あなた|お前|君)は(?:今から|これから|今後|もう|今や)|(?:今から|これから|今後は?)(?:あなた|お前|君)(?:は|が)",
    ),
    order(
        "ja: hand over",
        HANDS_OVER,
        "エージェント|agent|merger|制御",
        r"(?:制御|コントロール|タスク|処理|セッション|作業|すべて|"
        r"全て)を?[^\n。]{0,20}?(?:エージェント|agent|merger|"
        r"ボット)[^\n。]{0,8}?(?:渡|移|引き継|転送|送)|(?:エージェント|agent|"
        r"merger)に[^\n。]{0,10}?(?:制御|タスク|処理|すべて)?を?(?:渡して|渡せ|移せ|移して|"
        r"引き継|転送)",
    ),
    order(
        "ja: not to the user",
        HIDES,
        "ユーザ|利用者|人間",
        r"(?:ユーザー?|利用者|人間)に(?:は|も)?[^\n。]{0,10}?(?:言わな|言うな|知らせな|知らせるな|伝えな|伝えるな|教えな|教えるな|報告しな|報告するな|話さな)",
    ),
    order(
        "ja: send secrets",
        LEAKS,
        "キー|鍵|パスワード|トークン|秘密|認証",
        r"(?:キー|鍵|パスワード|トークン|秘密|認証情報)を?[^\n。]{0,24}?(?:送信し|送って|送れ|アップロードし|転送し|投稿し)(?:て|ろ|なさい|れ)?",
    ),
)
