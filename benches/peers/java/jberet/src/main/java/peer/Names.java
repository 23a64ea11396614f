package peer;

import java.lang.reflect.Proxy;
import java.util.Hashtable;
import javax.naming.Context;
import javax.naming.spi.InitialContextFactory;
import javax.sql.DataSource;

/** The names by which artifacts look the data source up, as in an application server. */
public final class Names implements InitialContextFactory {
    static DataSource database;

    @Override
    public Context getInitialContext(Hashtable<?, ?> environment) {
        return (Context) Proxy.newProxyInstance(Names.class.getClassLoader(), new Class<?>[] {Context.class},
                (proxy, method, arguments) -> method.getName().equals("lookup") ? database : null);
    }
}
